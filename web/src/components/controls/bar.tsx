import type { ReactNode } from 'react'
import { Icon } from '../icon.tsx'
import css from './bar.module.css'

export interface BarProps {
  readonly kind?: 'info' | 'caution' | 'bad'
  readonly children: ReactNode
  /** Buttons at its end. */
  readonly action?: ReactNode
  /** For what has to be read at once. */
  readonly isUrgent?: boolean
}

/** A message in the flow of the page: "2 changes. Show". It is announced when it appears. */
export function Bar({ kind = 'info', children, action, isUrgent = kind === 'bad' }: BarProps) {
  const icon = kind === 'info' ? 'info' : kind === 'caution' ? 'triangle-alert' : 'circle-alert'
  return (
    <div className={css.bar} data-kind={kind} role={isUrgent ? 'alert' : 'status'}>
      <Icon name={icon} />
      <div className={css.barText}>{children}</div>
      {action}
    </div>
  )
}
