// Measures the columns that a text takes in a terminal, and truncates it to a number of columns. Node measures text for its
// own prompt, but does not export that function.

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })
const isAscii = /^[\x20-\x7e]*$/
/** Characters of double width (East Asian Wide and Fullwidth), and emoji that are shown as pictures. */
const wide =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Tangut}\p{Script=Nushu}\p{Script=Khitan_Small_Script}\p{Emoji_Presentation}\u3000-\u303e\u3200-\u33ff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]/u
/** Letters of half the usual width, in scripts that `wide` lists. */
const halfWidth = /[\uff61-\uffdc]/
/** Combining marks, joiners and direction marks, and the vowels and finals of a Hangul syllable. */
const withoutWidth = /[\p{Mn}\p{Me}\p{Cf}\p{Cc}\u1160-\u11ff\ud7b0-\ud7ff]/u
/** Characters that become one picture: by a variation selector after them, by a joiner, or as the letters of a flag. */
const picture = /\ufe0f|\p{Emoji}\p{M}*\u200d|^\p{Regional_Indicator}/u

export function measureTextWidth(text: string): number {
  if (isAscii.test(text)) return text.length
  let width = 0
  for (const { segment } of segmenter.segment(text)) width += measureGraphemeWidth(segment)
  return width
}

/** @returns the text if it fits; otherwise its beginning and an ellipsis, at most `widthMax` columns in total. */
export function truncateToWidth(text: string, widthMax: number): string {
  if (measureTextWidth(text) <= widthMax) return text
  let width = 0
  let kept = ''
  for (const { segment } of segmenter.segment(text)) {
    width += measureGraphemeWidth(segment)
    if (width > widthMax - 1) break
    kept += segment
  }
  return widthMax < 1 ? '' : `${kept}…`
}

function measureGraphemeWidth(grapheme: string): number {
  if (picture.test(grapheme)) return 2
  let width = 0
  for (const sign of grapheme) if (!withoutWidth.test(sign)) width += wide.test(sign) && !halfWidth.test(sign) ? 2 : 1
  // An emoji with a skin tone modifier is one picture.
  return /\p{Emoji_Modifier}$/u.test(grapheme) ? Math.min(2, width) : width
}
