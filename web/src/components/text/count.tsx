import { formatCount, formatCounted, formatShortCount } from './format-number.ts'
import css from './text.module.css'

export interface CountProps {
  readonly value: number
  /** What is counted: `{ one: 'flag', other: 'flags' }`. */
  readonly words?: { readonly one: string; readonly other: string }
  /** Whether there is more than was counted. */
  readonly isMore?: boolean
  /** Three digits, with the exact number in the title. */
  readonly isShort?: boolean
}

export function Count({ value, words, isMore = false, isShort = false }: CountProps) {
  const exact =
    words === undefined ? `${isMore ? 'more than ' : ''}${formatCount(value)}` : formatCounted(value, words, isMore)
  return (
    <span className={css.number} title={isShort ? exact : undefined}>
      {isShort ? formatShortCount(value) : exact}
    </span>
  )
}
