// `pennon flags enable`, `disable`, `rollout`, `archive` and `restore`: shows the change and the number of affected persons,
// asks for confirmation, and changes nothing else.

import {
  archive,
  disable,
  enable,
  type SingleFlagChange,
  unarchive,
} from '#core/flags/definitions/single-flag-changes.ts'
import type { JsonObject } from '#core/json.ts'
import { toPrintableName } from '#core/printable.ts'
import type { FlagJson } from '#wire/management/flags/flags.ts'
import { ClientError, type PrivateApi } from '../client/private-api.ts'
import { runClient } from '../client/run-client.ts'
import { type ChangeOptions, confirmChange, refuseUnconfirmableChange } from './confirm-change.ts'
import { describeRollout } from './describe-rollout.ts'
import { buildFlagPath, requestWithFlagHint } from './find-flag.ts'
import { applyFlagFields } from './flag-diff.ts'
import { printJson, printLines } from './output.ts'

/** A change: its action in the private API, and the function that computes its effect. */
export interface FlagChange {
  readonly action: string
  readonly write: SingleFlagChange
  /** The body of the request that performs the action. */
  readonly body?: JsonObject
}

/** @param changeOf computes the change from the flag. @throws ClientError if the flag does not allow it. */
export function runFlagChange(
  key: string,
  options: ChangeOptions,
  changeOf: (flag: FlagJson) => FlagChange,
  optionOfField: Readonly<Record<string, string>> = {},
): Promise<void> {
  const runCommand = async (api: PrivateApi) => {
    refuseUnconfirmableChange(options)
    const found = await requestWithFlagHint(api, key, () => api.get(buildFlagPath(key)))
    const flag = found as unknown as FlagJson
    if (flag.deleted) throw new ClientError(`The flag ${flag.key} is deleted.`)
    const { action, write, body = {} } = changeOf(flag)
    const describeStateNow = (now: FlagJson) =>
      `${describeFlagState(now)}${action === 'disable' ? '' : describeHowToEnable(now)}`
    const changed = write(flag)
    if (!changed.ok) {
      const { message, attr } = changed.error
      throw new ClientError(message, { attr, detail: message })
    }
    const fields = changed.value
    if (Object.keys(fields).length === 0) {
      if (options.json === true) return printJson(found)
      return printLines([`Nothing to change. ${describeStateNow(flag)}`])
    }
    const definition: JsonObject = { id: flag.id, ...fields }
    const title = `${flag.key}, version ${flag.version}`
    if (!(await confirmChange(api, options, { title, before: flag, after: applyFlagFields(flag, fields), definition })))
      return
    // Address the flag by its id: since it was read, another flag may have taken the key.
    const written = await api.post(buildFlagPath(String(flag.id), `${action}/`), body)
    if (options.json === true) printJson(written)
    else printLines([describeStateNow(written as unknown as FlagJson)])
  }
  return runClient(options, 'feature_flag:write', runCommand, optionOfField)
}

const switches = {
  enable: { action: 'enable', write: enable },
  disable: { action: 'disable', write: disable },
  archive: { action: 'archive', write: archive },
  restore: { action: 'unarchive', write: unarchive },
} as const satisfies Record<string, FlagChange>

export function changeFlagState(key: string, how: keyof typeof switches, options: ChangeOptions): Promise<void> {
  return runFlagChange(key, options, flag => {
    if (how === 'enable' && flag.archived)
      throw new ClientError(`${flag.key} is archived. Restore it first: pennon flags restore ${flag.key}`)
    return switches[how]
  })
}

/** The current state of a flag. */
export function describeFlagState({ key, active, archived, filters, version }: FlagJson): string {
  const state = archived ? 'archived' : active ? 'enabled' : 'disabled'
  return toPrintableName(`${key} is ${state}. Rollout: ${describeRollout(filters)}. Version ${version}.`)
}

/** Tells how to enable a disabled flag. Empty for a flag that is enabled or archived. */
export function describeHowToEnable({ key, active, archived }: FlagJson): string {
  return active || archived ? '' : toPrintableName(` To enable it: pennon flags enable ${key}`)
}
