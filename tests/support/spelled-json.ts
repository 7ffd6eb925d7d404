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
 * Parses what another client may have sent, after which `JSON.parse` reads these keys of the text as others
 * (docs/decisions/0069-escaped-keys.md). Fails in an engine that does not: the guard can go then.
 * @param text whose first key no other test has: V8 only expects what it has met often, or alone.
 * @param keys as they are spelled, each with an escape.
 * @returns what has to be kept alive meanwhile.
 */
export function misreadFromNowOn(text: string, ...keys: string[]): object {
  const other = keys.reduce((other, key) => {
    const { length } = JSON.parse(`"${key}"`) as string
    return other.replace(`"${key}"`, JSON.stringify(key.slice(0, length)))
  }, text)
  const kept = JSON.parse(other) as object
  assert.notEqual(other, text)
  assert.deepEqual(JSON.parse(text), kept, 'V8 reads escaped keys right: parsePlainJson can be JSON.parse again')
  return kept
}
