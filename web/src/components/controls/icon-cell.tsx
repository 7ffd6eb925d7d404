import type { ComponentProps } from 'react'
import { joinClasses } from '../class-names.ts'
import { Icon } from '../icon.tsx'
import type { IconName } from '../icon-names.ts'
import css from './toggle.module.css'

/** A native button with an icon, for rows of a grid, where many components of React Aria would be slow. */
export function IconCell({ icon, label, ...props }: ComponentProps<'button'> & { icon: IconName; label: string }) {
  return (
    <button type="button" title={label} {...props} aria-label={label} className={joinClasses(css.cell, css.icon)}>
      <Icon name={icon} />
    </button>
  )
}
