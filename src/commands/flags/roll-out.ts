// `pennon flags rollout`: sets the percentage of one condition, or rolls out to everyone.

import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { rollOutToEveryone, setConditionRollout } from '#core/flags/definitions/single-flag-changes.ts'
import type { FlagJson } from '#wire/management/flags/flags.ts'
import { ClientError } from '../client/private-api.ts'
import { type FlagChange, runFlagChange } from './change-flag.ts'
import type { ChangeOptions } from './confirm-change.ts'
import { describeConditions, formatConditionLines } from './describe-rollout.ts'

export interface RolloutOptions extends ChangeOptions {
  /** The number that `pennon flags show` gives the condition, from 1. */
  readonly condition?: string
  readonly variant?: string
}

/** @param share a percentage, with or without its sign, or `everyone`. */
export function rollOutFlag(key: string, share: string, options: RolloutOptions): Promise<void> {
  return runFlagChange(key, options, flag => planRollout(flag, share, options), { variant_key: '--variant' })
}

/** @throws ClientError for an invalid percentage, a condition that does not exist, or options that exclude each other. */
export function planRollout(
  { key, filters, version }: Pick<FlagJson, 'key' | 'filters' | 'version'>,
  share: string,
  { condition, variant }: Pick<RolloutOptions, 'condition' | 'variant'>,
): FlagChange {
  if (readConfigVersion(filters) !== 1)
    throw new ClientError(
      `${key} has rules, which contain the percentages. Change them in a file: ` +
        `pennon flags export ${key} > ${key}.json, then pennon flags import ${key}.json`,
    )
  if (share === 'everyone') {
    if (condition !== undefined) throw new ClientError('everyone adds a new condition: omit --condition.')
    const body = { version, ...(variant !== undefined && { variant_key: variant }) }
    return { action: 'roll_out_to_everyone', write: rollOutToEveryone(variant ?? null), body }
  }
  if (variant !== undefined) throw new ClientError('--variant can only be used with everyone, not with a percentage.')
  const percentage = parseRolloutPercentage(share)
  const conditionCount = describeConditions(filters).length
  if (condition === undefined && conditionCount > 1)
    throw new ClientError(
      `Select a condition with --condition, 1 to ${conditionCount}: ${formatConditionLines(filters).join('; ')}.`,
    )
  const number = condition ?? '1'
  if (!/^[1-9]\d{0,5}$/.test(number) || Number(number) > Math.max(1, conditionCount))
    throw new ClientError(
      `--condition must be a number from 1 to ${conditionCount}, as in pennon flags show, not ${number}.`,
    )
  const conditionIndex = Number(number) - 1
  return {
    action: 'set_release_condition_rollout',
    write: setConditionRollout(conditionIndex, percentage),
    body: { condition_index: conditionIndex, rollout_percentage: percentage, version },
  }
}

/** @throws ClientError */
export function parseRolloutPercentage(text: string): number {
  const [, digits] = /^(\d{1,3}(?:\.\d{1,10})?) ?%?$/.exec(text) ?? []
  if (digits === undefined || Number(digits) > 100)
    throw new ClientError(`A rollout must be a percentage from 0 to 100, or everyone, not ${text}.`)
  return Number(digits)
}
