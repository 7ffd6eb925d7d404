import assert from 'node:assert/strict'

/** Writes JSON as clients may: with blanks anywhere and any character escaped. */
export function spelledJson(value: unknown, random: () => number): string {
  const blanks = () => ['', '', '', ' ', '\n', '\t', ' \r\n '][Math.floor(random() * 7)]!
  const text = (raw: string) =>
    `"${[
      ...JSON.stringify(raw)
        .slice(1, -1)
        .matchAll(/\\u....|\\.|[^\\]/gu),
    ]
      .map(([character]) =>
        character.length === 1 && random() < 0.1
          ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
          : character,
      )
      .join('')}"`
  const write = (inner: unknown): string => {
    if (typeof inner === 'string') return text(inner)
    if (Array.isArray(inner)) return `[${blanks()}${inner.map(write).join(`${blanks()},${blanks()}`)}${blanks()}]`
    if (typeof inner === 'object' && inner !== null) {
      const members = Object.entries(inner).map(
        ([key, member]) => `${text(key)}${blanks()}:${blanks()}${write(member)}`,
      )
      return `{${blanks()}${members.join(`${blanks()},${blanks()}`)}${blanks()}}`
    }
    return JSON.stringify(inner)
  }
  return `${blanks()}${write(value)}${blanks()}`
}

/**
 * Parses JSON as another client may have sent it, after which `JSON.parse` misreads these keys of the text
 * (docs/decisions/0069-escaped-keys.md). Fails in an engine that reads them correctly: the guard can then be removed.
 * @param text whose first key no other test uses: V8 predicts only keys that it has met often, or exclusively.
 * @param keys as they are spelled, each with an escape.
 * @returns a value that must be kept alive until then.
 */
export function misreadFromNowOn(text: string, ...keys: string[]): object {
  const other = keys.reduce((other, key) => {
    const { length } = JSON.parse(`"${key}"`) as string
    return other.replace(`"${key}"`, JSON.stringify(key.slice(0, length)))
  }, text)
  const kept = JSON.parse(other) as object
  assert.notEqual(other, text)
  assert.deepEqual(
    JSON.parse(text),
    kept,
    'V8 reads escaped keys correctly: parseJsonWithDoubles can be JSON.parse again',
  )
  return kept
}
