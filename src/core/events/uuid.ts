// UUIDs as text: which texts are UUIDs, and their canonical form.

/** Length of the canonical form, in characters. */
export const uuidTextLength = 36

const dashedUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const canonicalUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const looseUuid =
  /^(?:urn:uuid:)?(\{)?([0-9a-f]{8})(-?)([0-9a-f]{4})\3([0-9a-f]{4})\3([0-9a-f]{4})\3([0-9a-f]{12})(\})?$/i

/** Whether the text is a UUID with dashes, in any case. */
export function isUuid(text: string): boolean {
  return dashedUuid.test(text)
}

/**
 * The lower-case text with dashes of a UUID of any version; also reads upper case, no dashes, braces and `urn:uuid:`.
 * @returns null for any other text.
 * Source: docs/wire/ingestion.md 2.2.
 */
export function parseUuid(text: string): string | null {
  if (canonicalUuid.test(text)) return text
  const parts = looseUuid.exec(text)
  if (parts === null || (parts[1] === undefined) !== (parts[8] === undefined)) return null
  return `${parts[2]}-${parts[4]}-${parts[5]}-${parts[6]}-${parts[7]}`.toLowerCase()
}
