import type { ReactNode } from 'react'
import { joinClasses } from '../class-names.ts'
import { Icon } from '../icon.tsx'
import css from './badge.module.css'

export interface BadgeProps {
  readonly kind?: 'neutral' | 'on' | 'info' | 'caution' | 'bad'
  /** The state in words; the colour only repeats it. */
  readonly children: ReactNode
}

export function Badge({ kind = 'neutral', children }: BadgeProps) {
  return (
    <span className={joinClasses(css.badge, css[kind])}>
      {kind === 'caution' || kind === 'bad' ? (
        <Icon name={kind === 'bad' ? 'circle-alert' : 'triangle-alert'} size={14} />
      ) : (
        <span className={css.dot} />
      )}
      {children}
    </span>
  )
}
