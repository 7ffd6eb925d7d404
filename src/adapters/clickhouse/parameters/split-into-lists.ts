// Splits long lists of query parameters over several form fields, since the server accepts at most 128 KiB per field.

/** The most characters of a list in one form field: each takes at most three bytes, or two when it is escaped. */
const listCharsMax = 40_000

/**
 * @param charsOf returns how many characters an item takes in a form field. @param charsMax the most characters of one
 * list.
 */
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
