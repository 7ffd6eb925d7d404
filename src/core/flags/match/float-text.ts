// Texts that count as numbers for `gt`, `between` and dates: exactly the literals that Rust reads as a float.

/** Texts come from the public: no digit may be matched in two ways, or a long run of them takes forever to refuse. */
const floatForm = /^[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|(inf|infinity|nan))$/i

/** The number a text stands for, `inf` and `nan` included; null when it is none. Source: docs/wire/evaluation.md 5.9. */
export function parseFloatText(text: string): number | null {
  const match = floatForm.exec(text)
  if (match === null) return null
  const word = match[1]?.toLowerCase()
  if (word === undefined) return Number(text)
  if (word === 'nan') return Number.NaN
  return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}
