import { type ReactNode, useEffect, useRef } from 'react'
import { joinClasses } from '../class-names.ts'
import css from './field.module.css'

export interface FormState {
  readonly isBusy: boolean
  /** Why it cannot be sent now. */
  readonly disabledReason?: string | null
}

export interface FormProps extends FormState {
  readonly children: ReactNode
  readonly onSubmit: () => void
  readonly className?: string | undefined
  /** For a button outside of the form. */
  readonly id?: string
}

/** Fields that are sent together. Its submit button gets the same state, since Enter in a field sends the form as well. */
export function Form({ children, onSubmit, isBusy, disabledReason = null, className, id }: FormProps) {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    // A field that was refused is read out when it gets the focus.
    if (!isBusy) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus()
  }, [isBusy])
  return (
    <form
      ref={form}
      id={id}
      className={joinClasses(css.form, className)}
      noValidate
      onSubmit={event => {
        event.preventDefault()
        if (!isBusy && disabledReason === null) onSubmit()
      }}
    >
      {children}
    </form>
  )
}
