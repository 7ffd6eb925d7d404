import { type ReactNode, type Ref, useState } from 'react'
import { TextArea as AriaTextArea, TextField as AriaTextField, Input } from 'react-aria-components'
import { joinClasses } from '../class-names.ts'
import { Icon } from '../icon.tsx'
import css from './field.module.css'
import { FieldLabel, FieldNote, type FieldProps, fieldState } from './field.tsx'

interface AnyTextFieldProps extends FieldProps {
  readonly value: string
  readonly onChange: (value: string) => void
  readonly onBlur?: () => void
  readonly name?: string
  readonly isReadOnly?: boolean
  readonly autoFocus?: boolean
  /** For keys, ids and JSON: fixed width, no spelling or capitals by the browser. */
  readonly isCode?: boolean
}

export interface TextFieldProps extends AnyTextFieldProps {
  readonly type?: 'text' | 'email' | 'password' | 'search' | 'url'
  /** For password managers: `username`, `current-password`, `new-password`. */
  readonly autoComplete?: string
  readonly inputRef?: Ref<HTMLInputElement>
  /** An icon or a unit at the start. */
  readonly start?: ReactNode
}

export function TextField(props: TextFieldProps) {
  const { type = 'text', autoComplete = 'off', inputRef, start } = props
  const [isShown, setShown] = useState(false)
  return (
    <AriaTextField {...textFieldProps(props)} type={isShown ? 'text' : type} autoComplete={autoComplete}>
      <FieldLabel {...props} />
      <div className={css.control}>
        {start}
        <Input ref={inputRef} className={joinClasses(css.input, props.isCode && css.code)} />
        {type === 'password' && (
          <button
            type="button"
            className={css.inside}
            disabled={props.isDisabled}
            aria-pressed={isShown}
            aria-label="Show the password"
            onClick={() => setShown(!isShown)}
          >
            <Icon name={isShown ? 'eye-off' : 'eye'} />
          </button>
        )}
      </div>
      <FieldNote {...props} />
    </AriaTextField>
  )
}

export interface TextAreaProps extends AnyTextFieldProps {
  readonly rows?: number
  readonly inputRef?: Ref<HTMLTextAreaElement>
}

/** Grows with its text. */
export function TextArea(props: TextAreaProps) {
  return (
    <AriaTextField {...textFieldProps(props)}>
      <FieldLabel {...props} />
      <div className={css.control}>
        <AriaTextArea
          ref={props.inputRef}
          rows={props.rows ?? 3}
          className={joinClasses(css.input, props.isCode && css.code)}
        />
      </div>
      <FieldNote {...props} />
    </AriaTextField>
  )
}

function textFieldProps(props: AnyTextFieldProps) {
  const { value, onChange, onBlur, name, isReadOnly = false, autoFocus = false, isCode = false } = props
  return {
    ...fieldState(props),
    ...(isCode ? { spellCheck: 'false' as const, autoCorrect: 'off', autoCapitalize: 'none' as const } : {}),
    value,
    onChange,
    onBlur,
    name,
    isReadOnly,
    // The caller opens a dialog or a screen in which this is the first thing to do.
    autoFocus,
    // The error that is shown is the caller's, not the browser's.
    validationBehavior: 'aria' as const,
  }
}
