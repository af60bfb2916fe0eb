//! The places of things on the chip: tiles on a mesh with two cores each, and four memory
//! controllers at its sides, in the first row and the one in the middle. Each core has its memory
//! at the controller of its quarter of the chip.
//!
//! Tiles are numbered row by row from (0, 0), cores two to a tile in the same order.

/// Bytes of a segment of the address space.
pub const SEGMENT: u64 = 16 << 20;

/// Memory controllers of a chip.
pub const CONTROLLERS: u32 = 4;

/// The positions of a chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    /// Tiles of a row, an even number.
    columns: u32,
    /// Rows of tiles, an even number.
    rows: u32,
    /// Bytes of the message passing buffer that belong to one core.
    pub buffer_bytes: u64,
}

impl Chip {
    /// Of `columns` times `rows` tiles, both even.
    pub fn new(columns: u32, rows: u32, buffer_bytes: u64) -> Self {
        Self {
            columns,
            rows,
            buffer_bytes,
        }
    }

    /// Tiles.
    pub fn tiles(&self) -> u32 {
        self.columns * self.rows
    }

    /// Tiles of a row.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Rows of tiles.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Cores.
    pub fn cores(&self) -> u32 {
        2 * self.tiles()
    }

    /// The tile of `core`.
    pub fn tile_of(core: u32) -> u32 {
        core / 2
    }

    /// The cores of `tile`.
    pub fn cores_of(tile: u32) -> [u32; 2] {
        [2 * tile, 2 * tile + 1]
    }

    /// Column and row of `tile`.
    pub fn position(&self, tile: u32) -> (u32, u32) {
        (tile % self.columns, tile / self.columns)
    }

    /// The tile there, if there is one.
    pub fn tile_at(&self, (x, y): (u32, u32)) -> Option<u32> {
        (x < self.columns && y < self.rows).then_some(y * self.columns + x)
    }

    /// The controller at which the memory of `core` is: 0 and 1 at the lower left and right, 2 and
    /// 3 in the middle.
    pub fn controller(&self, core: u32) -> u32 {
        let (x, y) = self.position(Self::tile_of(core));
        2 * u32::from(y >= self.rows / 2) + u32::from(x >= self.columns / 2)
    }

    /// Returns whether `controller` is at the left side.
    pub fn is_west(&self, controller: u32) -> bool {
        controller.is_multiple_of(2)
    }

    /// The tile at whose router `controller` hangs: column and row.
    pub fn controller_at(&self, controller: u32) -> (u32, u32) {
        let x = match self.is_west(controller) {
            true => 0,
            false => self.columns - 1,
        };
        (x, controller / 2 * (self.rows / 2))
    }

    /// Hops from `core` to its controller.
    pub fn hops_to_controller(&self, core: u32) -> u32 {
        let (x, y) = self.position(Self::tile_of(core));
        let (to_x, to_y) = self.controller_at(self.controller(core));
        x.abs_diff(to_x) + y.abs_diff(to_y)
    }

    /// The controller behind the left or right port of the tile there, if there is one.
    pub fn controller_behind(&self, tile: (u32, u32), west: bool) -> Option<u32> {
        (0..CONTROLLERS).find(|&controller| {
            self.controller_at(controller) == tile && self.is_west(controller) == west
        })
    }

    /// Returns the number of `core` among those of its controller.
    pub fn number_at_controller(&self, core: u32) -> u32 {
        let (x, y) = self.position(Self::tile_of(core));
        let (width, height) = (self.columns / 2, self.rows / 2);
        2 * (y % height * width + x % width) + core % 2
    }

    /// The core of that number at `controller`, if there is one.
    pub fn core_at_controller(&self, controller: u32, number: u32) -> Option<u32> {
        let (width, height) = (self.columns / 2, self.rows / 2);
        let (x, y) = (number / 2 % width, number / 2 / width);
        let x = x + controller % 2 * width;
        let tile = (y + controller / 2 * height) * self.columns + x;
        (number < 2 * width * height).then_some(2 * tile + number % 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_at_four_corners_and_cores_at_the_nearest_of_their_quarter() {
        let chip = Chip::new(6, 4, 8 << 10);
        let at: Vec<_> = (0..CONTROLLERS).map(|c| chip.controller_at(c)).collect();
        assert_eq!(at, [(0, 0), (5, 0), (0, 2), (5, 2)]);
        let mut seen = [0; CONTROLLERS as usize];
        for core in 0..chip.cores() {
            let controller = chip.controller(core);
            let number = chip.number_at_controller(core);
            assert_eq!(chip.core_at_controller(controller, number), Some(core));
            assert!(number < 12);
            seen[controller as usize] += 1;
        }
        assert_eq!(seen, [12; 4]);
        assert_eq!(chip.core_at_controller(0, 12), None);
        assert_eq!(chip.controller_behind((5, 2), false), Some(3));
        assert_eq!(chip.controller_behind((5, 2), true), None);
    }
}
