import type { ReactElement, ReactNode } from 'react'
import { Tooltip as AriaTooltip, Focusable, TooltipTrigger } from 'react-aria-components'
import css from './popups.module.css'

/** What a tooltip looks like; goes into a `TooltipTrigger` beside its button. */
export function Tooltip({ children }: { children: ReactNode }) {
  return (
    <AriaTooltip className={css.tooltip!} offset={6}>
      {children}
    </AriaTooltip>
  )
}

/** Explains an element that can be focused, such as a link or a span with a role. Buttons have their own tooltips. */
export function WithTooltip({ text, children }: { text: string; children: ReactElement<{ role?: string }, string> }) {
  return (
    <TooltipTrigger delay={500} closeDelay={0}>
      <Focusable>{children}</Focusable>
      <Tooltip>{text}</Tooltip>
    </TooltipTrigger>
  )
}
