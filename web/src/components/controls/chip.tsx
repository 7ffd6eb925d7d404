import { Icon } from '../icon.tsx'
import { formatOutsideText } from '../text/outside-text.ts'
import css from './badge.module.css'

export interface ChipProps {
  readonly text: string
  /** Of a variant: its place in the flag, from 0. */
  readonly series?: number
  readonly onRemove?: () => void
}

const seriesCount = 8
const charsMax = 40

/** A tag, a value or a variant. The list of chips is the caller's. */
export function Chip({ text, series, onRemove }: ChipProps) {
  const shown = formatOutsideText(text, { charsMax })
  return (
    <span className={css.chip}>
      {series !== undefined && (
        <span className={css.colour} style={{ '--series': seriesColour(series) } as React.CSSProperties} />
      )}
      <bdi
        className={css.chipText}
        title={text.length > charsMax ? formatOutsideText(text, { charsMax: 1_000 }) : undefined}
      >
        {shown === '' ? '(empty)' : shown}
      </bdi>
      {onRemove && (
        <button type="button" className={css.remove} aria-label={`Remove ${shown}`} onClick={onRemove}>
          <Icon name="x" size={14} />
        </button>
      )}
    </span>
  )
}

/** The colour of a variant, which is the same on every screen. */
export function seriesColour(place: number): string {
  return `var(--series-${(place % seriesCount) + 1})`
}
