// Sends long lists to the server in pieces that fit its form fields, and fails when the results exceed the memory
// allowed.

import { foundCharsMax, foundRowsMax } from '#ports/events/imported-rows.ts'
import { QueryTooLargeError } from '#ports/port-error.ts'
import { splitIntoLists } from './field-lists.ts'

export function countTextChars(text: string): number {
  return text.length + 4
}

/** Each piece of the items with each piece of the keys. */
export function splitItemsAndKeys<Item>(
  items: readonly Item[],
  charsOf: (item: Item) => number,
  keys: readonly string[],
): { readonly items: Item[]; readonly keys: string[] }[] {
  const ofKeys = splitIntoLists(keys, countTextChars)
  return splitIntoLists(items, charsOf).flatMap(some => ofKeys.map(keys => ({ items: some, keys })))
}

/**
 * Asks for one list after the other.
 * @param charsOf the variable characters of a row; 0 when absent.
 * @throws QueryTooLargeError for more than `foundRowsMax` or `foundCharsMax`, and what `find` throws.
 */
export async function queryListByList<List, Row>(
  lists: readonly List[],
  find: (list: List) => Promise<readonly Row[]>,
  charsOf: (row: Row) => number = () => 0,
): Promise<Row[]> {
  const found: Row[] = []
  let charCount = 0
  for (const list of lists) {
    for (const row of await find(list)) {
      found.push(row)
      charCount += charsOf(row)
    }
    if (found.length > foundRowsMax || charCount > foundCharsMax)
      throw new QueryTooLargeError('event-store', 'full', new Error('too many rows for one batch'))
  }
  return found
}
