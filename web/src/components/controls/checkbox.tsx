import { type ComponentProps, type ReactNode, useId } from 'react'
import { joinClasses } from '../class-names.ts'
import css from './toggle.module.css'

export interface CheckboxProps {
  readonly label: ReactNode
  readonly isOn: boolean
  readonly onChange: (isOn: boolean) => void
  /** Neither on nor off: some of what it stands for is. */
  readonly isMixed?: boolean
  readonly help?: ReactNode
  readonly error?: string | null
  readonly isDisabled?: boolean
}

export function Checkbox({ label, help, error, isDisabled = false, ...box }: CheckboxProps) {
  const id = useId()
  const note = error ?? help
  return (
    <div className={css.row}>
      <CheckboxCell
        {...box}
        id={id}
        disabled={isDisabled}
        aria-invalid={typeof error === 'string' || undefined}
        aria-describedby={note === undefined ? undefined : `${id}-note`}
      />
      <div className={css.text}>
        <label htmlFor={id}>{label}</label>
        {note !== undefined && (
          <div id={`${id}-note`} className={joinClasses(css.note, typeof error === 'string' && css.error)}>
            {note}
          </div>
        )}
      </div>
    </div>
  )
}

export interface CheckboxCellProps extends Omit<ComponentProps<'input'>, 'onChange'> {
  readonly isOn: boolean
  readonly onChange: (isOn: boolean, event: { readonly shiftKey: boolean }) => void
  readonly isMixed?: boolean
}

/** The bare input, for rows of a grid. Needs an `aria-label`. */
export function CheckboxCell({ isOn, onChange, isMixed = false, ...props }: CheckboxCellProps) {
  return (
    <input
      {...props}
      ref={input => {
        if (input !== null) input.indeterminate = isMixed
      }}
      type="checkbox"
      className={joinClasses(css.cell, css.checkbox)}
      checked={isOn}
      onChange={event => onChange(event.target.checked, { shiftKey: (event.nativeEvent as MouseEvent).shiftKey })}
    />
  )
}
