import { useState } from 'react'
import { ComboBox } from '../../components/fields/combo-box.tsx'
import { NumberField } from '../../components/fields/number-field.tsx'
import type { Option } from '../../components/fields/options.tsx'
import { Select } from '../../components/fields/select.tsx'
import { TextArea, TextField } from '../../components/fields/text-field.tsx'
import { Icon } from '../../components/icon.tsx'
import { samples } from './samples.ts'
import { Columns, Section } from './section.tsx'
import css from './workbench.module.css'

const operators: readonly Option[] = [
  { id: 'exact', label: 'is any of' },
  { id: 'is_not', label: 'is none of' },
  { id: 'gt', label: '>', detail: 'For numbers' },
  { id: 'regex', label: 'matches', isDisabled: true },
]
const properties: readonly Option[] = [
  { id: 'country', label: 'country', detail: 'Text, 98 % of persons' },
  { id: 'age', label: 'age', detail: 'Number, 40 % of persons' },
  { id: 'rtl', label: samples.rightToLeft },
  { id: 'override', label: samples.override },
  { id: 'long', label: samples.long },
]

export function FieldsSection() {
  const [key, setKey] = useState('new-checkout')
  const [password, setPassword] = useState('correct horse battery')
  const [note, setNote] = useState('')
  const [json, setJson] = useState('{\n  "colour": "blue"\n}')
  const [rollout, setRollout] = useState(25)
  const [operator, setOperator] = useState<string | null>('exact')
  const [property, setProperty] = useState<string | null>('country')
  return (
    <Section title="Fields">
      <Columns>
        <TextField
          label="Key"
          value={key}
          onChange={setKey}
          isCode
          help="What code asks for. It cannot be changed later."
        />
        <TextField
          label="Key"
          value={key}
          onChange={setKey}
          isCode
          error="Flag 12 has this key. Choose another one, or open flag 12."
        />
        <form className={css.section}>
          <TextField
            label="E-mail"
            type="email"
            autoComplete="username"
            value="ada@example.com"
            onChange={setKey}
            isDisabled
          />
          <TextField
            label="Password"
            type="password"
            autoComplete="current-password"
            value={password}
            onChange={setPassword}
          />
        </form>
        <TextField
          label="Search flags"
          isLabelHidden
          type="search"
          value=""
          onChange={setKey}
          start={<Icon name="search" />}
        />
        <TextField label="Name" isOptional value={samples.rightToLeft} onChange={setKey} />
        <TextField label={samples.sentence} value={samples.long} onChange={setKey} help={samples.sentence} />
        <TextArea label="Note" isOptional value={note} onChange={setNote} help="Shown in the history" />
        <TextArea
          label="Payload"
          value={json}
          onChange={setJson}
          isCode
          error="Line 2, column 3: a name in quotes is expected."
        />
        <NumberField
          label="Rollout"
          value={rollout}
          onChange={setRollout}
          min={0}
          max={100}
          step={0.01}
          unit="% of persons"
          hasSlider
        />
        <NumberField label="Weight" value={33.33} onChange={setRollout} min={0} max={100} help="The sum is 99.99" />
        <NumberField label="Rollout" value={10} onChange={setRollout} min={0} max={100} hasSlider isDisabled unit="%" />
        <NumberField label="Age" value={Number.NaN} onChange={setRollout} error="Type a number" />
        <Select label="Operator" options={operators} value={operator} onChange={setOperator} />
        <Select label="Cohort" options={[]} value={null} onChange={setOperator} help="There are no cohorts yet" />
        <Select label="Operator" options={operators} value="gt" onChange={setOperator} isDisabled />
        <Select
          label="Property"
          options={properties}
          value="long"
          onChange={setOperator}
          error="No person has this property"
        />
        <ComboBox label="Property of persons" options={properties} value={property} onChange={setProperty} isCode />
        <ComboBox label="Group type" options={[]} value={null} onChange={setProperty} isDisabled />
      </Columns>
    </Section>
  )
}
