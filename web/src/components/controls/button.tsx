import { type ComponentProps, type ReactNode, type Ref, useId, useState } from 'react'
import { Button as AriaButton, type ButtonProps as AriaButtonProps, TooltipTrigger } from 'react-aria-components'
import { joinClasses } from '../class-names.ts'
import { Icon } from '../icon.tsx'
import type { IconName } from '../icon-names.ts'
import css from './button.module.css'
import { Tooltip } from './tooltip.tsx'

export interface ButtonProps
  extends Pick<AriaButtonProps, 'onPress' | 'autoFocus' | 'type' | 'form' | 'slot' | 'aria-expanded'> {
  /** A verb and its object: "Turn off". */
  readonly children: ReactNode
  readonly kind?: 'plain' | 'filled' | 'danger' | 'bare'
  readonly icon?: IconName
  readonly isBusy?: boolean
  /** Why the button does nothing now. It keeps its place in the tab order, so that the reason can be read. */
  readonly disabledReason?: string | null
  readonly ref?: Ref<HTMLButtonElement>
}

export function Button({ children, icon, ...props }: ButtonProps) {
  return (
    <AnyButton {...props}>
      {icon && <Icon name={icon} />}
      <span className={css.label}>{children}</span>
    </AnyButton>
  )
}

/** A link that looks like a button, for what opens another screen. Made for `createLink` of the router as well. */
export function ButtonLink({
  children,
  kind = 'plain',
  icon,
  ...props
}: ComponentProps<'a'> & Pick<ButtonProps, 'kind' | 'icon'>) {
  return (
    <a {...props} className={joinClasses(css.button, css[kind], props.className)}>
      {icon && <Icon name={icon} />}
      <span className={css.label}>{children}</span>
    </a>
  )
}

export interface IconButtonProps extends Omit<ButtonProps, 'children' | 'icon'> {
  readonly icon: IconName
  /** The name of the button, which its tooltip shows. */
  readonly label: string
}

export function IconButton({ label, icon, kind = 'bare', ...props }: IconButtonProps) {
  return (
    <AnyButton {...props} kind={kind} label={label} className={css.icon}>
      <Icon name={icon} />
    </AnyButton>
  )
}

interface AnyButtonProps extends ButtonProps {
  readonly label?: string
  readonly className?: string
}

function AnyButton(props: AnyButtonProps) {
  const { children, kind = 'plain', isBusy = false, disabledReason, label, className, onPress, type, ...rest } = props
  const [isTooltipOpen, setTooltipOpen] = useState(false)
  const reasonId = useId()
  const isDisabled = typeof disabledReason === 'string'
  const tooltip = disabledReason ?? label
  const button = (
    <AriaButton
      {...rest}
      // A submit button stays one while it does nothing, since Enter would send a form without one. `Form` knows its state.
      type={type ?? 'button'}
      className={joinClasses(css.button, css[kind], className)}
      // `isPending` of React Aria announces an element by a reference that outlives it.
      data-busy={isBusy || undefined}
      aria-label={label}
      aria-disabled={isDisabled || isBusy || undefined}
      aria-describedby={isDisabled ? reasonId : undefined}
      // There is no pointer over a button on a touch screen, so pressing shows the reason as well. Enter in a field presses
      // the submit button without giving it the focus, with which the tooltip would close again.
      onPress={
        isDisabled ? ({ target }) => setTooltipOpen(target === document.activeElement) : isBusy ? undefined : onPress
      }
    >
      {children}
      {isBusy && (
        <span className={css.busy}>
          <Icon name="loader-circle" />
          <span className="visually-hidden">, working</span>
        </span>
      )}
    </AriaButton>
  )
  if (tooltip === undefined) return button
  return (
    <TooltipTrigger isOpen={isTooltipOpen} onOpenChange={setTooltipOpen} delay={500} closeDelay={0}>
      {button}
      <Tooltip>{tooltip}</Tooltip>
      {isDisabled && (
        <span id={reasonId} hidden>
          {disabledReason}
        </span>
      )}
    </TooltipTrigger>
  )
}
