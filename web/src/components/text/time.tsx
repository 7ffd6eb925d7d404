import { createContext, useContext } from 'react'
import { formatTime, type TimeForm, type TimeZones } from './format-time.ts'
import { useNow } from './now.ts'
import css from './text.module.css'

/** In which zone times are shown. */
export const TimeZonesContext = createContext<TimeZones>({ choice: 'browser' })

export interface TimeProps {
  /** ISO 8601 text or ms since the epoch. */
  readonly at: string | number
  readonly form?: TimeForm
}

export function Time({ at, form }: TimeProps) {
  const zones = useContext(TimeZonesContext)
  const nowMs = useNow()
  const atMs = typeof at === 'number' ? at : Date.parse(at)
  const { text, title } = formatTime(atMs, nowMs, zones, form)
  return (
    <time
      className={css.number}
      dateTime={Number.isNaN(new Date(atMs).getTime()) ? undefined : new Date(atMs).toISOString()}
      title={title}
    >
      {text}
    </time>
  )
}
