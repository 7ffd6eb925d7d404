// Every outcome that a flag can have, made once and numbered: an evaluation only picks one, and an answer finds the
// text that it prepared for the outcome by its number. Outcomes are made when first picked, since a flag with a
// thousand sets rarely needs them all.

import { getOwnValue, isRawNumber, type JsonObject } from '../../json.ts'
import type { FlagOutcome, PayloadText, UnknownReason } from './flag-outcome.ts'
import { unknownReasons } from './flag-outcome.ts'

export type PreparedOutcome = FlagOutcome & {
  /** Index of this outcome among the outcomes of its flag. */
  readonly slot: number
}

/** The reasons that name a set, in the order of their slots. */
const setOffReasons = [
  'no_group_type',
  'no_condition_match',
  'no_condition_match_groups_not_sent',
  'no_condition_match_behavioral_cohort',
  'out_of_rollout_bound',
] as const
export type SetOffReason = (typeof setOffReasons)[number]

const missingDependencySlot = 0
const optedInSlot = 1
const optedOutSlot = 2
const holdoutSlot = 3
const noSetSlot = 4
const unknownSlots = 5
const setSlots = unknownSlots + unknownReasons.length
/** A flag that has rules has no sets, so the outcomes of its rules reuse the numbers of set outcomes. */
export const ruleSlots = setSlots

export class PreparedOutcomes {
  readonly #made: (PreparedOutcome | undefined)[] = []
  readonly #variantKeys: readonly string[]
  readonly #holdoutKey: string | null
  readonly #payloads: JsonObject
  readonly #slotsPerSet: number

  constructor(options: {
    readonly variantKeys: readonly string[]
    readonly holdoutKey: string | null
    readonly payloads: JsonObject
  }) {
    this.#variantKeys = options.variantKeys
    this.#holdoutKey = options.holdoutKey
    this.#payloads = options.payloads
    this.#slotsPerSet = setOffReasons.length + 1 + options.variantKeys.length
  }

  missingDependency(): PreparedOutcome {
    return this.#pick(missingDependencySlot, () => offOutcome('missing_dependency', null, undefined))
  }

  /** The outcome of an early access decision: on or off, both with the payload of `true`. */
  enrollment(isEnrolled: boolean): PreparedOutcome {
    return isEnrolled
      ? this.#pick(optedInSlot, () => onOutcome('super_condition_value', 0, readPayloadText(this.#payloads, 'true')))
      : this.#pick(optedOutSlot, () => offOutcome('super_condition_value', 0, readPayloadText(this.#payloads, 'true')))
  }

  holdout(): PreparedOutcome {
    const variantKey = this.#holdoutKey ?? ''
    return this.#pick(holdoutSlot, () =>
      variantOutcome(variantKey, 'holdout_condition_value', null, readPayloadText(this.#payloads, variantKey)),
    )
  }

  unknown(reason: UnknownReason): PreparedOutcome {
    return this.#pick(unknownSlots + unknownReasons.indexOf(reason), () => {
      return { kind: 'unknown', reason, conditionIndex: null, payload: undefined }
    })
  }

  /** The outcome when no set matched. @param setIndex the set that came closest; -1 when the flag has no sets. */
  noMatch(reason: SetOffReason, setIndex: number): PreparedOutcome {
    if (setIndex < 0) return this.#pick(noSetSlot, () => offOutcome('no_group_type', null, undefined))
    const slot = setSlots + setIndex * this.#slotsPerSet + setOffReasons.indexOf(reason)
    return this.#pick(slot, () => offOutcome(reason, setIndex, undefined))
  }

  /** The outcome when a set matched. @param variantIndex -1 for no variant. */
  match(setIndex: number, variantIndex: number): PreparedOutcome {
    const slot = setSlots + setIndex * this.#slotsPerSet + setOffReasons.length + 1 + variantIndex
    const known = this.#made[slot]
    if (known !== undefined) return known
    return this.#pick(slot, () => {
      if (variantIndex < 0) return onOutcome('condition_match', setIndex, readPayloadText(this.#payloads, 'true'))
      const variantKey = this.#variantKeys[variantIndex]!
      return variantOutcome(variantKey, 'condition_match', setIndex, readPayloadText(this.#payloads, variantKey))
    })
  }

  #pick(slot: number, make: () => FlagOutcome): PreparedOutcome {
    const known = this.#made[slot]
    if (known !== undefined) return known
    const prepared = { ...make(), slot }
    this.#made[slot] = prepared
    return prepared
  }
}

type Off = Extract<FlagOutcome, { kind: 'off' }>
type On = Extract<FlagOutcome, { kind: 'on' }>
type Variant = Extract<FlagOutcome, { kind: 'variant' }>

function offOutcome(reason: Off['reason'], conditionIndex: number | null, payload: PayloadText | undefined): Off {
  return { kind: 'off', reason, conditionIndex, payload }
}

function onOutcome(reason: On['reason'], conditionIndex: number, payload: PayloadText | undefined): On {
  return { kind: 'on', reason, conditionIndex, payload }
}

function variantOutcome(
  variantKey: string,
  reason: Variant['reason'],
  conditionIndex: number | null,
  payload: PayloadText | undefined,
): Variant {
  return { kind: 'variant', variantKey, reason, conditionIndex, payload }
}

/**
 * A text payload as stored, any other as its JSON text: typed SDKs accept only strings.
 * Source: docs/wire/evaluation.md 2.7.
 */
export function readPayloadText(payloads: JsonObject, valueKey: string): PayloadText | undefined {
  const payload = getOwnValue(payloads, valueKey)
  if (payload === undefined || payload === null || typeof payload === 'string') return payload
  return isRawNumber(payload) ? payload.rawJSON : JSON.stringify(payload)
}
