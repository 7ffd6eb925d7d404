import { type ComponentProps, type ReactNode, useId } from 'react'
import { joinClasses } from '../class-names.ts'
import css from './toggle.module.css'

export interface SwitchProps {
  readonly label: ReactNode
  readonly isOn: boolean
  readonly onChange: (isOn: boolean) => void
  readonly help?: ReactNode
  /** While it is not known whether the change is served. */
  readonly isBusy?: boolean
  /** Why it cannot be switched; shown in place of the help. */
  readonly disabledReason?: string | null
}

export function Switch({ label, help, ...props }: SwitchProps) {
  const id = useId()
  const note = props.disabledReason ?? help
  return (
    <div className={css.row}>
      <SwitchCell {...props} id={id} aria-describedby={note === undefined ? undefined : `${id}-note`} />
      <div className={css.text}>
        <label htmlFor={id}>{label}</label>
        {note !== undefined && (
          <div id={`${id}-note`} className={css.note}>
            {note}
          </div>
        )}
      </div>
    </div>
  )
}

export interface SwitchCellProps
  extends Omit<ComponentProps<'input'>, 'onChange'>,
    Pick<SwitchProps, 'isOn' | 'onChange' | 'isBusy' | 'disabledReason'> {}

/** The bare input, for rows of a grid. Needs an `aria-label`. It keeps its place in the tab order while it is disabled. */
export function SwitchCell({ isOn, onChange, isBusy = false, disabledReason, className, ...props }: SwitchCellProps) {
  const isFixed = isBusy || typeof disabledReason === 'string'
  return (
    <input
      title={disabledReason ?? undefined}
      {...props}
      type="checkbox"
      role="switch"
      className={joinClasses(css.cell, css.switch, className)}
      checked={isOn}
      aria-busy={isBusy || undefined}
      aria-disabled={typeof disabledReason === 'string' || undefined}
      onChange={event => {
        // The input is controlled, so that it stays as it is.
        if (!isFixed) onChange(event.target.checked)
      }}
    />
  )
}
