// Reads the texts that count as numbers for `gt`, `between` and dates: exactly the literals that Rust reads as a float.

/** Texts come from the public, so no digit may match in two ways: refusing a long run of digits would then take forever. */
const floatForm = /^[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|(inf|infinity|nan))$/i

/**
 * The number that a text means, including `inf` and `nan`; null for any other text. Source: docs/wire/evaluation.md
 * 5.9.
 */
export function parseFloatText(text: string): number | null {
  const match = floatForm.exec(text)
  if (match === null) return null
  const word = match[1]?.toLowerCase()
  if (word === undefined) return Number(text)
  if (word === 'nan') return Number.NaN
  return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}
