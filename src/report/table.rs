//! Aligned text tables: numbers flush right, words flush left, two blanks between columns.
//!
//! Called by every command for `--format table`.

use super::row::Cell;

/// `rows` under `heading`, aligned. What all rows share stands once above the rest, as
/// `key  value`, unless there is nothing else to show.
pub fn rows(heading: &[String], rows: &[Vec<Cell>]) -> String {
    let same = |column: usize| {
        let first = rows.first().and_then(|row| row.get(column));
        rows.iter().all(|row| row.get(column) == first)
    };
    let (shared, varying): (Vec<usize>, Vec<usize>) = (0..heading.len()).partition(|&i| same(i));
    let mut text = String::new();
    if let Some(first) = rows.first() {
        let pairs = shared.iter().filter_map(|&i| {
            let (key, cell) = (heading.get(i)?, first.get(i)?);
            (shown(cell) != ABSENT).then(|| vec![Cell::text(key), cell.clone()])
        });
        text.push_str(&aligned(&[], &pairs.collect::<Vec<_>>()));
    }
    if !varying.is_empty() {
        let pick = |row: &Vec<Cell>| {
            let cells = varying.iter().filter_map(|&i| row.get(i).cloned());
            cells.collect::<Vec<_>>()
        };
        let heading: Vec<String> = varying
            .iter()
            .filter_map(|&i| heading.get(i).cloned())
            .collect();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&aligned(
            &heading,
            &rows.iter().map(pick).collect::<Vec<_>>(),
        ));
    }
    text
}

/// `rows` under `heading` (no heading where it is empty), each column as wide as its widest cell.
pub fn aligned(heading: &[String], rows: &[Vec<Cell>]) -> String {
    let columns = rows.iter().map(Vec::len).chain([heading.len()]).max();
    let columns = columns.unwrap_or(0);
    let mut widths: Vec<usize> = vec![0; columns];
    let mut right = vec![true; columns];
    for (width, key) in widths.iter_mut().zip(heading) {
        *width = length(key);
    }
    for row in rows {
        for ((width, right), cell) in widths.iter_mut().zip(&mut right).zip(row) {
            *width = (*width).max(length(&shown(cell)));
            *right &= cell.is_number() || *cell == Cell::Absent;
        }
    }
    let mut text = String::new();
    if !heading.is_empty() {
        let cells: Vec<String> = heading.to_vec();
        push_line(&mut text, &cells, &widths, &right);
    }
    for row in rows {
        let cells: Vec<String> = row.iter().map(shown).collect();
        push_line(&mut text, &cells, &widths, &right);
    }
    text
}

const ABSENT: &str = "-";

fn shown(cell: &Cell) -> String {
    let text = cell.to_text();
    if text.is_empty() {
        ABSENT.to_owned()
    } else {
        text
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn push_line(text: &mut String, cells: &[String], widths: &[usize], right: &[bool]) {
    let mut line = String::new();
    for ((cell, &width), &right) in cells.iter().zip(widths).zip(right) {
        if !line.is_empty() {
            line.push_str("  ");
        }
        let padding = " ".repeat(width.saturating_sub(length(cell)));
        if right {
            line.push_str(&padding);
            line.push_str(cell);
        } else {
            line.push_str(cell);
            line.push_str(&padding);
        }
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, count: u64) -> Vec<Cell> {
        vec![Cell::text("m"), Cell::text(name), Cell::Count(count)]
    }

    #[test]
    fn what_all_rows_share_stands_above() {
        let heading = ["machine", "algorithm", "n"].map(String::from);
        let text = rows(&heading, &[row("tree", 5), row("flat", 1_000)]);
        assert_eq!(
            text,
            "machine  m\n\nalgorithm     n\ntree          5\nflat       1000\n"
        );
    }

    #[test]
    fn one_row_is_a_list_of_keys_and_absent_cells_are_left_out() {
        let heading = ["machine", "x", "n"].map(String::from);
        let one = vec![Cell::text("m"), Cell::Absent, Cell::Count(7)];
        assert_eq!(rows(&heading, &[one]), "machine  m\nn        7\n");
    }

    #[test]
    fn numbers_stand_flush_right_and_absent_ones_show() {
        let heading = ["us".to_owned()];
        let cells = [vec![Cell::Count(12_345)], vec![Cell::Absent]];
        assert_eq!(aligned(&heading, &cells), "   us\n12345\n    -\n");
    }
}
