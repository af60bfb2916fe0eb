//! Aligned text tables: numbers flush right, words flush left, two blanks between columns.
//!
//! Called by every command for `--format table`.

use std::collections::HashSet;

use super::row::Cell;

/// `rows` under `heading`, aligned. What all rows share stands once above the rest, as
/// `key  value`, unless there is nothing else to show. Lines have at most `within` columns of text,
/// where that is given and a cell fits: see [`folded`].
pub fn rows(heading: &[String], rows: &[Vec<Cell>], within: Option<usize>) -> String {
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
        if !text.is_empty() {
            text.push('\n');
        }
        let (heading, rows) = picked(heading, rows, &varying);
        text.push_str(&folded(&heading, &rows, within));
    }
    text
}

/// These columns of a table alone.
fn picked(
    heading: &[String],
    rows: &[Vec<Cell>],
    columns: &[usize],
) -> (Vec<String>, Vec<Vec<Cell>>) {
    let pick = |row: &Vec<Cell>| {
        let cells = columns.iter().filter_map(|&i| row.get(i).cloned());
        cells.collect::<Vec<_>>()
    };
    let heading = columns.iter().filter_map(|&i| heading.get(i).cloned());
    (heading.collect(), rows.iter().map(pick).collect())
}

/// `rows` under `heading`, aligned, as several tables one below the other where lines would have
/// more than `within` columns of text. Each begins with the columns that tell the rows apart.
pub fn folded(heading: &[String], rows: &[Vec<Cell>], within: Option<usize>) -> String {
    let whole = aligned(heading, rows);
    let longest = whole.lines().map(length).max().unwrap_or(0);
    let Some(within) = within.filter(|within| longest > *within) else {
        return whole;
    };
    let (widths, _) = measures(heading, rows);
    let width = |columns: &[usize]| {
        let widths = columns.iter().map(|&column| widths[column] + GAP.len());
        widths.sum::<usize>().saturating_sub(GAP.len())
    };
    let lead = lead(rows, widths.len());
    // Columns that take most of the line are not repeated.
    let lead: Vec<usize> = (0..lead).collect();
    let repeated = match width(&lead) * 2 > within {
        true => Vec::new(),
        false => lead.clone(),
    };
    let mut tables = Vec::new();
    let mut columns: Vec<usize> = repeated.clone();
    for column in repeated.len()..widths.len() {
        let wider = [columns.as_slice(), &[column]].concat();
        if width(&wider) > within && columns.len() > repeated.len() {
            tables.push(std::mem::replace(&mut columns, repeated.clone()));
        }
        columns.push(column);
    }
    tables.push(columns);
    let table = |columns: &Vec<usize>| {
        let (heading, rows) = picked(heading, rows, columns);
        aligned(&heading, &rows)
    };
    tables.iter().map(table).collect::<Vec<_>>().join("\n")
}

/// Number of first columns that tell all rows apart; of equal rows, none do.
fn lead(rows: &[Vec<Cell>], columns: usize) -> usize {
    let tells = |count: &usize| {
        let mut known = HashSet::new();
        rows.iter().all(|row| known.insert(row.get(..*count)))
    };
    (1..columns).find(tells).unwrap_or(0)
}

/// `rows` under `heading` (no heading where it is empty), each column as wide as its widest cell.
pub fn aligned(heading: &[String], rows: &[Vec<Cell>]) -> String {
    let (widths, right) = measures(heading, rows);
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

/// The width of each column, and whether it stands flush right.
fn measures(heading: &[String], rows: &[Vec<Cell>]) -> (Vec<usize>, Vec<bool>) {
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
    (widths, right)
}

const ABSENT: &str = "-";

/// The space between two columns.
const GAP: &str = "  ";

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
            line.push_str(GAP);
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
        let text = rows(&heading, &[row("tree", 5), row("flat", 1_000)], None);
        assert_eq!(
            text,
            "machine  m\n\nalgorithm     n\ntree          5\nflat       1000\n"
        );
    }

    #[test]
    fn one_row_is_a_list_of_keys_and_absent_cells_are_left_out() {
        let heading = ["machine", "x", "n"].map(String::from);
        let one = vec![Cell::text("m"), Cell::Absent, Cell::Count(7)];
        assert_eq!(rows(&heading, &[one], None), "machine  m\nn        7\n");
    }

    #[test]
    fn a_wide_table_is_several_that_name_their_rows() {
        let heading = ["name", "first", "second", "third"].map(String::from);
        let cells = [1, 20].map(|n| {
            let numbers = [n, n * 1_000, n * 1_000_000].map(Cell::Count);
            [Cell::text(format!("row {n}"))]
                .into_iter()
                .chain(numbers)
                .collect::<Vec<_>>()
        });
        let whole = "name    first  second     third\n\
                     row 1       1    1000   1000000\n\
                     row 20     20   20000  20000000\n";
        assert_eq!(folded(&heading, &cells, Some(31)), whole);
        assert_eq!(folded(&heading, &cells, None), whole);
        assert_eq!(
            folded(&heading, &cells, Some(21)),
            "name    first  second\nrow 1       1    1000\nrow 20     20   20000\n\n\
             name       third\nrow 1    1000000\nrow 20  20000000\n"
        );
        // Where not even a column fits, each has a table of its own.
        assert_eq!(folded(&heading, &cells, Some(1)).matches("\n\n").count(), 3);
    }

    #[test]
    fn numbers_stand_flush_right_and_absent_ones_show() {
        let heading = ["us".to_owned()];
        let cells = [vec![Cell::Count(12_345)], vec![Cell::Absent]];
        assert_eq!(aligned(&heading, &cells), "   us\n12345\n    -\n");
    }
}
