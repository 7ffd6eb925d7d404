// Splits long lists of query parameters: a form field of the server holds 128 KiB, so a list is sent in several fields.

/** A UTF-16 unit takes three bytes at most, or two when it is escaped. */
const listCharsMax = 40_000

/** @param charsOf how many characters an item takes in a field. @param charsMax of a list. */
export function splitIntoLists<Item>(
  items: Iterable<Item>,
  charsOf: (item: Item) => number,
  charsMax = listCharsMax,
): Item[][] {
  const lists: Item[][] = []
  let charCount = Number.POSITIVE_INFINITY
  for (const item of items) {
    const chars = charsOf(item)
    charCount += chars
    if (charCount > charsMax) {
      lists.push([])
      charCount = chars
    }
    lists.at(-1)!.push(item)
  }
  return lists
}
