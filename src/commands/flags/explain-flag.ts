// `pennon flags explain`: shows why a person gets a flag's value, condition by condition.

import type { JsonObject, JsonValue } from '#core/json.ts'
import { parseJson } from '#core/json.ts'
import { printableName } from '#core/printable.ts'
import { describeFilter } from '#wire/management/flags/explanation-filters.ts'
import type { ExplanationJson } from '#wire/management/flags/explanation-shapes.ts'
import { ClientError } from '../client/private-api.ts'
import { type ClientOptions, runClient } from '../client/run-client.ts'
import { type Terminal, terminalOf } from '../client/terminal.ts'
import { flagPath, requestFlag } from './find-flag.ts'
import { printJson, printLines } from './output.ts'

export interface ExplainOptions extends ClientOptions {
  /** `key=value` */
  readonly property?: readonly string[]
  /** `type=key` */
  readonly group?: readonly string[]
}

export function explainFlag(key: string, distinctId: string, options: ExplainOptions): Promise<void> {
  return runClient(options, 'feature_flag:read', async api => {
    const { property = [], group = [] } = options
    const body: JsonObject = {
      distinct_id: distinctId,
      person_properties: Object.fromEntries(
        property.map(text => parsePairOption(text, '--property', 'plan=pro', jsonOrText)),
      ),
      groups: Object.fromEntries(group.map(text => parsePairOption(text, '--group', 'company=acme', value => value))),
    }
    const explanation = await requestFlag(api, key, () => api.post(flagPath(key, 'explain/'), body))
    if (options.json === true) printJson(explanation)
    else printLines(explanationLines(explanation as unknown as ExplanationJson, terminalOf(process.stdout)))
  })
}

function parsePairOption(
  text: string,
  option: string,
  example: string,
  read: (value: string) => JsonValue,
): [string, JsonValue] {
  const at = text.indexOf('=')
  if (at < 1) throw new ClientError(`${option} must be a name and a value, such as ${example}, not ${text}`)
  return [text.slice(0, at), read(text.slice(at + 1))]
}

function jsonOrText(text: string): JsonValue {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}

export function explanationLines(explanation: ExplanationJson, terminal: Terminal): string[] {
  const lines = [terminal.paint('bold', printableName(explanation.summary))]
  for (const { condition_index, result, note, filters, rollout, variant, rule } of explanation.conditions) {
    const percentage = rollout.percentage ?? 100
    const share = rollout.in === null ? '' : `; ${percentage} %: ${rollout.in ? 'in' : 'out'}`
    const hashed = result === 'matched' && explanation.variant?.by === 'hash' ? explanation.variant.chosen : null
    const named = variant !== null ? `; variant ${variant}` : hashed !== null ? `; variant ${hashed}, by hash` : ''
    const name = rule === undefined ? 'set' : `${rule.rule_type.replaceAll('_', ' ')}, rule`
    const line = `${name} ${condition_index + 1}: ${result.replaceAll('_', ' ')}${share}${named}${note === null ? '' : `; ${note}`}`
    const style = result === 'matched' ? 'green' : result === 'failed' ? 'red' : 'dim'
    lines.push(`  ${terminal.paint(style, printableName(line))}`)
    for (const filter of filters) {
      const { result, compared, note } = filter
      const sign = result === 'passed' ? '✓' : result === 'failed' ? '✗' : '·'
      const found =
        compared === null
          ? ''
          : `: ${compared.source === 'absent' ? 'absent' : `${formatValue(compared.value)} (${compared.source})`}`
      lines.push(
        `      ${sign} ${printableName(`${describeFilter(filter)}${found}${note === null ? '' : `; ${note}`}`)}`,
      )
    }
  }
  for (const problem of explanation.problems) lines.push(terminal.paint('yellow', `  ! ${printableName(problem)}`))
  return lines
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null)
}
