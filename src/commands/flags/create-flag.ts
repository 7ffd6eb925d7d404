// `pennon flags create`: creates a flag. Without conditions it would be on for all users, so it stays off unless `--active`
// is given.

import { randomUUID } from 'node:crypto'
import { readConfigVersion } from '#core/flags/definitions/read-rules.ts'
import { assignRuleIds } from '#core/flags/definitions/rule-ids.ts'
import { isJsonObject, type JsonObject, parseJson } from '#core/json.ts'
import type { FlagJson } from '#wire/management/flags/flags.ts'
import { ClientError, type PrivateApi } from '../client/private-api.ts'
import { runClient } from '../client/run-client.ts'
import { describeFlagState, describeHowToEnable } from './change-flag.ts'
import { type ChangeOptions, confirmChange, refuseUnconfirmableChange } from './confirm-change.ts'
import { buildFlagPath } from './find-flag.ts'
import { printJson, printLines } from './output.ts'
import { parseRolloutPercentage } from './roll-out.ts'

export interface CreateOptions extends ChangeOptions {
  readonly name?: string
  readonly tag?: readonly string[]
  readonly rollout?: string
  /** JSON text. */
  readonly filters?: string
  readonly active?: boolean
  readonly inactive?: boolean
}

export function createFlag(key: string, options: CreateOptions): Promise<void> {
  const runCommand = async (api: PrivateApi) => {
    refuseUnconfirmableChange(options)
    const flag = buildNewFlag(key, options)
    await refuseTakenKey(api, key)
    const { active } = flag
    const filters = addRuleIds(flag.filters)
    const title = `A new flag ${key}`
    const planned = { title, before: null, after: { active, archived: false, filters }, definition: flag }
    if (!(await confirmChange(api, options, planned))) return
    const created = await api.post('/feature_flags/', flag)
    if (options.json === true) printJson(created)
    else
      printLines([
        describeFlagState(created as unknown as FlagJson) + describeHowToEnable(created as unknown as FlagJson),
      ])
  }
  return runClient(options, 'feature_flag:write', runCommand, { filters: '--filters', tags: '--tag', name: '--name' })
}

/** Called before anything is shown or asked. @throws ClientError if the project has a flag with this key. */
async function refuseTakenKey(api: PrivateApi, key: string): Promise<void> {
  try {
    // This path also takes ids, so a key that consists of digits may find the flag with this id.
    if ((await api.get(buildFlagPath(key))).key !== key) return
  } catch (error) {
    if (error instanceof ClientError && error.status === 404) return
    throw error
  }
  throw new ClientError(`The flag ${key} already exists. To see it: pennon flags show ${key}`)
}

/**
 * Adds temporary ids and seeds to rules that are only displayed, since rules without them cannot be read. When the service
 * stores the rules, it assigns its own ids and seeds.
 */
function addRuleIds(filters: JsonObject): JsonObject {
  const identified = readConfigVersion(filters) === 2 ? assignRuleIds(filters, null, randomUUID) : null
  return identified?.ok ? identified.value : filters
}

/** @throws ClientError for conflicting options. */
export function buildNewFlag(
  key: string,
  { name, tag, rollout, filters, active, inactive }: Omit<CreateOptions, 'project'>,
): JsonObject & { readonly active: boolean; readonly filters: JsonObject } {
  if (active === true && inactive === true) throw new ClientError('--active and --inactive cannot be combined.')
  if (rollout !== undefined && filters !== undefined)
    throw new ClientError(
      '--rollout and --filters cannot be combined: --rollout is a condition for all users, --filters contains all conditions.',
    )
  const share = rollout === undefined ? 100 : rollout === 'everyone' ? 100 : parseRolloutPercentage(rollout)
  const everybody = { groups: [{ properties: [], rollout_percentage: share }] }
  const given = filters === undefined ? undefined : parseFiltersOption(filters)
  const hasConditions = rollout !== undefined || (given !== undefined && Object.hasOwn(given, 'groups'))
  return {
    key,
    ...(name !== undefined && { name }),
    ...(tag !== undefined && { tags: [...tag] }),
    filters: given !== undefined && readConfigVersion(given) !== 1 ? given : { ...everybody, ...given },
    active: active ?? (inactive !== true && hasConditions),
  }
}

function parseFiltersOption(text: string): JsonObject {
  let value: ReturnType<typeof parseJson>
  try {
    value = parseJson(text)
  } catch {
    value = null
  }
  if (!isJsonObject(value))
    throw new ClientError(`--filters must be a JSON object, such as '{"groups": [{"rollout_percentage": 10}]}'.`)
  return value
}
