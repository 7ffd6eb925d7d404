import { type ReactNode, useId } from 'react'
import { joinClasses } from '../class-names.ts'
import { Icon } from '../icon.tsx'
import type { IconName } from '../icon-names.ts'
import css from './toggle.module.css'

export interface Choice<Id extends string = string> {
  readonly id: Id
  readonly label: ReactNode
  readonly help?: ReactNode
  readonly isDisabled?: boolean
  /** For segments. */
  readonly icon?: IconName
}

export interface RadioGroupProps<Id extends string> {
  readonly label: string
  readonly isLabelHidden?: boolean
  readonly choices: readonly Choice<Id>[]
  readonly value: Id
  readonly onChange: (id: Id) => void
  readonly isDisabled?: boolean
}

export function RadioGroup<Id extends string>(props: RadioGroupProps<Id>) {
  const name = useId()
  return (
    <Choices {...props} className={css.group!}>
      {props.choices.map(choice => (
        <div key={choice.id} className={css.row}>
          <Radio
            {...props}
            name={name}
            choice={choice}
            id={`${name}-${choice.id}`}
            className={joinClasses(css.cell, css.radio)}
          />
          <div className={css.text}>
            <label htmlFor={`${name}-${choice.id}`}>{choice.label}</label>
            {choice.help !== undefined && (
              <div id={`${name}-${choice.id}-note`} className={css.note}>
                {choice.help}
              </div>
            )}
          </div>
        </div>
      ))}
    </Choices>
  )
}

/** A few short choices side by side. */
export function Segments<Id extends string>(props: RadioGroupProps<Id>) {
  const name = useId()
  return (
    <Choices {...props} className={css.segments!}>
      {props.choices.map(choice => (
        <label key={choice.id} htmlFor={`${name}-${choice.id}`} className={css.segment}>
          <Radio {...props} name={name} choice={choice} id={`${name}-${choice.id}`} />
          {choice.icon && <Icon name={choice.icon} />}
          {choice.label}
        </label>
      ))}
    </Choices>
  )
}

interface ChoicesProps {
  readonly label: string
  readonly isLabelHidden?: boolean
  readonly className: string
  readonly children: ReactNode
}

function Choices({ label, isLabelHidden = false, className, children }: ChoicesProps) {
  return (
    <fieldset>
      <legend className={isLabelHidden ? 'visually-hidden' : css.legend}>{label}</legend>
      <div className={className}>{children}</div>
    </fieldset>
  )
}

interface RadioProps<Id extends string> extends RadioGroupProps<Id> {
  readonly name: string
  readonly choice: Choice<Id>
  readonly id: string
  readonly className?: string
}

function Radio<Id extends string>({ name, choice, value, onChange, isDisabled, id, className }: RadioProps<Id>) {
  return (
    <input
      type="radio"
      name={name}
      id={id}
      className={className}
      checked={choice.id === value}
      disabled={isDisabled || choice.isDisabled}
      aria-describedby={choice.help !== undefined ? `${id}-note` : undefined}
      onChange={() => onChange(choice.id)}
    />
  )
}
