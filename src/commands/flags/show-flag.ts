// `pennon flags show`: prints one flag.

import type { JsonObject } from '#core/json.ts'
import { getOwnValue, isJsonObject } from '#core/json.ts'
import { toPrintableName } from '#core/printable.ts'
import type { FlagJson } from '#wire/management/flags/flags.ts'
import { type ClientOptions, runClient } from '../client/run-client.ts'
import { createTerminal, type Terminal } from '../client/terminal.ts'
import { describeRollout, formatConditionLines, formatVariantLines } from './describe-rollout.ts'
import { buildFlagPath, requestWithFlagHint } from './find-flag.ts'
import { printJson, printLines } from './output.ts'

export function showFlag(key: string, options: ClientOptions): Promise<void> {
  return runClient(options, 'feature_flag:read', async api => {
    const flag = await requestWithFlagHint(api, key, () => api.get(buildFlagPath(key)))
    if (options.json === true) return printJson(flag)
    const { reason } = await api.get(buildFlagPath(key, 'status/'))
    printLines(formatFlag(flag as unknown as FlagJson, String(reason), createTerminal(process.stdout)))
  })
}

/** @param reason the API's explanation of the flag's status. */
export function formatFlag(flag: FlagJson, reason: string, terminal: Terminal): string[] {
  const facts: [name: string, value: string | readonly string[]][] = [
    ['key', flag.key],
    ['id', `${flag.id}, version ${flag.version}`],
    ['name', flag.name],
    ['status', `${flag.status.toLowerCase()}: ${reason}`],
    ['called', flag.last_called_at ?? 'never recorded'],
    ['rollout', describeRollout(flag.filters)],
    ['conditions', formatConditionLines(flag.filters)],
    ['variants', formatVariantLines(flag.filters)],
    ['payloads', formatPayloadLines(flag.filters)],
    ['tags', flag.tags.join(', ')],
    ['runtime', flag.evaluation_runtime],
    ['contexts', flag.evaluation_contexts.join(', ')],
    ['created', `${flag.created_at}${flag.created_by === null ? '' : ` by ${flag.created_by.first_name}`}`],
    ['changed', flag.updated_at],
  ]
  const width = Math.max(...facts.map(([name]) => name.length))
  return facts.flatMap(([name, value]) => {
    const lines = [value].flat().filter(line => line !== '')
    return lines.map((line, index) => {
      const title = index === 0 ? terminal.paint('bold', name) + ' '.repeat(width - name.length) : ' '.repeat(width)
      return `${title}  ${toPrintableName(line)}`
    })
  })
}

function formatPayloadLines(filters: JsonObject): string[] {
  const payloads = getOwnValue(filters, 'payloads')
  if (!isJsonObject(payloads)) return []
  return Object.entries(payloads).map(([value, payload]) => {
    return `${value}: ${typeof payload === 'string' ? payload : JSON.stringify(payload)}`
  })
}
