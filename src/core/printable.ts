// Escapes text from clients for a terminal or a page that people read.

/**
 * Text from clients must not move the cursor, change a line's direction, break the line or hide in it. So control and
 * format characters, separators and lone surrogates are escaped as in JSON, which also keeps a JSON line valid.
 */
export function toPrintable(line: string): string {
  return line.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escapeChars)
}

/** Like `toPrintable`, but keeps the joiners with which words of some scripts and many emoji are written. */
export function toPrintableName(name: string): string {
  return name.replaceAll(/(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, escapeChars)
}

function escapeChars(chars: string): string {
  const units = Array.from({ length: chars.length }, (_, index) => chars.charCodeAt(index))
  return units.map(unit => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
