import { joinClasses } from '../class-names.ts'
import { formatOutsideText, showOutsideText } from './outside-text.ts'
import css from './text.module.css'

export interface OutsideProps {
  readonly text: string
  readonly charsMax?: number
  /** Keys, ids and code. */
  readonly isCode?: boolean
  readonly isMultiline?: boolean
}

const titleCharsMax = 1_000

/** Text from outside: a key, a name, an id, a property. It is only ever text, and stays in its place. */
export function Outside({ text, charsMax, isCode, isMultiline }: OutsideProps) {
  if (text === '') return <span className={css.none}>(empty)</span>
  const { parts, isTruncated } = showOutsideText(text, { charsMax, isMultiline })
  return (
    <bdi
      className={joinClasses(css.outside, isCode && css.code, isMultiline && css.lines)}
      title={isTruncated ? formatOutsideText(text, { charsMax: titleCharsMax }) : undefined}
    >
      {parts.map((part, place) =>
        part.codePoint === undefined ? (
          part.text
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts have no identity and no state
          <span key={place} className={css.picture} title={part.codePoint}>
            {part.text}
          </span>
        ),
      )}
    </bdi>
  )
}
