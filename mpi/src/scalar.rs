//! Values that messages carry, as bytes: little-endian.

/// A value of a predefined datatype.
pub trait Scalar: Copy + Default + Send + Sync + 'static {
    /// Bytes of a value.
    const BYTES: usize;

    /// Appends the value's bytes.
    fn write(self, bytes: &mut Vec<u8>);

    /// The value of the first bytes; of fewer than it has, those missing are 0.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl Scalar for $type {
            const BYTES: usize = size_of::<$type>();

            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$type>()];
                for (own, byte) in own.iter_mut().zip(bytes) {
                    *own = *byte;
                }
                Self::from_le_bytes(own)
            }
        }
    )*};
}

scalars!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

/// The bytes of `values`.
pub fn to_bytes<T: Scalar>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(values));
    for value in values {
        value.write(&mut bytes);
    }
    bytes
}

/// Fills `values` from `bytes`, as far as those go; how many values that were.
pub fn from_bytes<T: Scalar>(bytes: &[u8], values: &mut [T]) -> usize {
    let pieces = bytes.chunks_exact(T::BYTES);
    let count = pieces.len().min(values.len());
    for (value, piece) in values.iter_mut().zip(pieces) {
        *value = T::read(piece);
    }
    count
}
