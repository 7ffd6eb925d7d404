import type { ReactNode } from 'react'
import { ComboBox as AriaComboBox, Button, Input, Popover } from 'react-aria-components'
import { joinClasses } from '../class-names.ts'
import popups from '../controls/popups.module.css'
import { Icon } from '../icon.tsx'
import css from './field.module.css'
import { FieldLabel, FieldNote, type FieldProps, fieldState } from './field.tsx'
import { type Option, OptionList } from './options.tsx'

export interface ComboBoxProps extends FieldProps {
  readonly options: readonly Option[]
  readonly value: string | null
  readonly onChange: (id: string | null) => void
  /** For options that the server finds: they are then shown as given, without a filter here. */
  readonly inputValue?: string
  readonly onInputChange?: (text: string) => void
  /** Whether a text that is no option may stay, which is then the value. */
  readonly allowsCustomValue?: boolean
  readonly isCode?: boolean
  readonly start?: ReactNode
}

export function ComboBox(props: ComboBoxProps) {
  const { options, value, onChange, inputValue, onInputChange, allowsCustomValue = false, isCode, start } = props
  const isFilteredByServer = onInputChange !== undefined
  return (
    <AriaComboBox
      {...fieldState(props)}
      {...(isFilteredByServer ? { items: options, inputValue, onInputChange } : { defaultItems: options })}
      value={value}
      onChange={id => onChange(id === null ? null : String(id))}
      allowsCustomValue={allowsCustomValue}
      allowsEmptyCollection
      menuTrigger="focus"
      validationBehavior="aria"
    >
      <FieldLabel {...props} />
      <div className={css.control}>
        {start}
        <Input className={joinClasses(css.input, isCode && css.code)} spellCheck="false" autoComplete="off" />
        <Button className={css.inside!}>
          <Icon name="chevron-down" />
        </Button>
      </div>
      <FieldNote {...props} />
      <Popover className={popups.popover!} offset={4}>
        <OptionList options={options} noneText="No match" />
      </Popover>
    </AriaComboBox>
  )
}
