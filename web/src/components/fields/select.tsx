import { useState } from 'react'
import { Select as AriaSelect, Button, Popover, SelectValue } from 'react-aria-components'
import { joinClasses } from '../class-names.ts'
import popups from '../controls/popups.module.css'
import { Icon } from '../icon.tsx'
import { Outside } from '../text/outside.tsx'
import css from './field.module.css'
import { FieldLabel, FieldNote, type FieldProps, fieldState } from './field.tsx'
import { type Option, OptionList } from './options.tsx'

export interface SelectProps extends FieldProps {
  readonly options: readonly Option[]
  /** The id of an option, or null while nothing is chosen. */
  readonly value: string | null
  readonly onChange: (id: string) => void
  /** While it is not known whether the choice is served. It keeps the focus, and cannot be changed. */
  readonly isBusy?: boolean
}

export function Select(props: SelectProps) {
  const { options, value, onChange, isBusy = false } = props
  const [isOpen, setOpen] = useState(false)
  const chosen = options.find(({ id }) => id === value)
  return (
    <AriaSelect
      {...fieldState(props)}
      value={value}
      onChange={id => id !== null && !isBusy && onChange(String(id))}
      isOpen={isOpen && !isBusy}
      onOpenChange={setOpen}
      validationBehavior="aria"
    >
      <FieldLabel {...props} />
      <Button className={joinClasses(css.control, css.select)} aria-disabled={isBusy || undefined}>
        <SelectValue className={css.value!}>{chosen ? <Outside text={chosen.label} /> : 'Choose'}</SelectValue>
        <Icon name="chevron-down" />
      </Button>
      <FieldNote {...props} />
      <Popover className={popups.popover!} offset={4}>
        <OptionList options={options} noneText="Nothing to choose from" />
      </Popover>
    </AriaSelect>
  )
}
