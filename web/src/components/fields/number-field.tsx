import {
  NumberField as AriaNumberField,
  Button,
  Group,
  Input,
  Slider,
  SliderFill,
  SliderThumb,
  SliderTrack,
} from 'react-aria-components'
import { Icon } from '../icon.tsx'
import css from './field.module.css'
import { FieldLabel, FieldNote, type FieldProps, fieldState } from './field.tsx'

export interface NumberFieldProps extends FieldProps {
  /** NaN while the field is empty. */
  readonly value: number
  readonly onChange: (value: number) => void
  /** When the slider is let go or the field is left; for what is too costly at every step. */
  readonly onChangeEnd?: (value: number) => void
  readonly min?: number
  readonly max?: number
  readonly step?: number
  /** After the number: "% of persons". */
  readonly unit?: string
  readonly digitsMax?: number
  /** Needs `min` and `max`. */
  readonly hasSlider?: boolean
  readonly sliderStep?: number
}

export function NumberField(props: NumberFieldProps) {
  const { value, onChange, onChangeEnd, min, max, step, unit, digitsMax = 2, hasSlider, sliderStep = 1 } = props
  return (
    <AriaNumberField
      {...fieldState(props)}
      value={value}
      onChange={next => {
        onChange(next)
        onChangeEnd?.(next)
      }}
      minValue={min}
      maxValue={max}
      step={step}
      formatOptions={{ maximumFractionDigits: digitsMax }}
      validationBehavior="aria"
    >
      <FieldLabel {...props} />
      <div className={css.numberRow}>
        <Group className={css.control!}>
          <Button slot="decrement" className={css.inside!}>
            <Icon name="minus" />
          </Button>
          <Input className={css.input!} />
          <Button slot="increment" className={css.inside!}>
            <Icon name="plus" />
          </Button>
        </Group>
        {unit !== undefined && <span className={css.unit}>{unit}</span>}
        {hasSlider && (
          <Slider
            className={css.slider!}
            aria-label={props.label}
            value={Number.isNaN(value) ? (min ?? 0) : value}
            onChange={onChange}
            onChangeEnd={onChangeEnd}
            minValue={min}
            maxValue={max}
            step={sliderStep}
            isDisabled={props.isDisabled}
          >
            <SliderTrack className={css.track!}>
              <SliderFill className={css.fill!} style={{ height: '4px' }} />
              <SliderThumb className={css.thumb!} />
            </SliderTrack>
          </Slider>
        )}
      </div>
      <FieldNote {...props} />
    </AriaNumberField>
  )
}
