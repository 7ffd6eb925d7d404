import type { ReactNode } from 'react'
import { FieldError, Label, Text } from 'react-aria-components'
import { joinClasses } from '../class-names.ts'
import { Icon } from '../icon.tsx'
import css from './field.module.css'

/** What every field has, whatever its control is. */
export interface FieldProps {
  readonly label: string
  /** Only where something else that is seen names the field, such as a search icon or a table's head. */
  readonly isLabelHidden?: boolean
  readonly help?: ReactNode
  /** What is wrong and how to put it right; in place of the help. */
  readonly error?: string | null
  readonly isOptional?: boolean
  readonly isDisabled?: boolean
}

export function FieldLabel({ label, isLabelHidden, isOptional }: FieldProps) {
  return (
    <Label className={isLabelHidden ? 'visually-hidden' : css.label!}>
      {label}
      {isOptional && <span className={css.optional}> (optional)</span>}
    </Label>
  )
}

export function FieldNote({ help, error }: FieldProps) {
  if (typeof error === 'string')
    return (
      <FieldError className={css.error!}>
        <Icon name="circle-alert" />
        <span>{error}</span>
      </FieldError>
    )
  if (help === undefined) return null
  return (
    <Text slot="description" className={css.note!}>
      {help}
    </Text>
  )
}

/** The properties of React Aria's fields that follow from ours. */
export function fieldState({ error, isDisabled = false }: FieldProps, className?: string) {
  return { isInvalid: typeof error === 'string', isDisabled, className: joinClasses(css.field, className) }
}
