// `pennon flags explain`: shows why a person gets a flag's value, condition by condition.

import type { JsonObject, JsonValue } from '#core/json.ts'
import { parseJson } from '#core/json.ts'
import { toPrintableName } from '#core/printable.ts'
import { describeFilter } from '#wire/management/flags/explanation-filters.ts'
import type { ExplanationJson } from '#wire/management/flags/explanation-shapes.ts'
import { ClientError } from '../client/private-api.ts'
import { type ClientOptions, runClient } from '../client/run-client.ts'
import { createTerminal, type Terminal } from '../client/terminal.ts'
import { buildFlagPath, requestWithFlagHint } from './find-flag.ts'
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
        property.map(text => parsePairOption(text, '--property', 'plan=pro', parseJsonOrText)),
      ),
      groups: Object.fromEntries(group.map(text => parsePairOption(text, '--group', 'company=acme', value => value))),
    }
    const explanation = await requestWithFlagHint(api, key, () => api.post(buildFlagPath(key, 'explain/'), body))
    if (options.json === true) printJson(explanation)
    else
      printLines(
        formatExplanation(explanation as unknown as ExplanationJson, distinctId, createTerminal(process.stdout)),
      )
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

function parseJsonOrText(text: string): JsonValue {
  try {
    return parseJson(text)
  } catch {
    return text
  }
}

const leftOutTexts: Record<NonNullable<ExplanationJson['left_out']>, string> = {
  deleted: 'is deleted and therefore not served',
  inactive: 'is inactive and therefore not served',
  encrypted_payloads: 'has encrypted payloads and is therefore not served as a flag',
  unreadable: 'is not served because its definition is invalid',
  dependency_cycle: 'is not served because the flags it depends on form a cycle',
  filtered_out: 'is not served to this caller because of its runtime or evaluation contexts',
}

function formatExplanation(explanation: ExplanationJson, distinctId: string, terminal: Terminal): string[] {
  const lines = [terminal.paint('bold', toPrintableName(formatAnswerLine(explanation, distinctId)))]
  for (const condition of explanation.conditions) {
    const { result, filters } = condition
    const style = result === 'matched' ? 'green' : result === 'failed' ? 'red' : 'dim'
    lines.push(`  ${terminal.paint(style, toPrintableName(formatConditionLine(condition, explanation.variant)))}`)
    for (const filter of filters) lines.push(`      ${toPrintableName(formatFilterLine(filter))}`)
  }
  for (const problem of explanation.problems) lines.push(terminal.paint('yellow', `  ! ${toPrintableName(problem)}`))
  return lines
}

function formatAnswerLine({ flag, left_out, value, failed, reason }: ExplanationJson, distinctId: string): string {
  const result = failed
    ? 'unknown because it could not be computed'
    : value === null
      ? "without a value, so the caller's default applies,"
      : JSON.stringify(value)
  const because = reason === null ? '' : `: ${reason.description}`
  if (left_out === null) return `${flag.key} is ${result} for ${distinctId}${because}.`
  return `${flag.key} ${leftOutTexts[left_out]}${reason === null ? '' : `; it would be ${result}${because}`}.`
}

function formatConditionLine(
  { condition_index, result, rollout, variant, rule }: ExplanationJson['conditions'][number],
  flagVariant: ExplanationJson['variant'],
): string {
  const name = rule === undefined ? 'set' : `${rule.rule_type.replaceAll('_', ' ')}, rule`
  const isOut = result === 'out_of_rollout_bound' || result === 'rollout_miss'
  const unhashed = isOut && rollout.hash === null ? ', with no id to hash' : ''
  const share =
    isOut || result === 'matched' ? `; ${rollout.percentage ?? 100} %: ${isOut ? 'out' : 'in'}${unhashed}` : ''
  const isHashed = result === 'matched' && variant === null && flagVariant !== null && flagVariant.hash !== null
  const named = variant !== null ? `; variant ${variant}` : isHashed ? `; variant ${flagVariant.chosen}, by hash` : ''
  return `${name} ${condition_index + 1}: ${result.replaceAll('_', ' ')}${share}${named}`
}

function formatFilterLine(filter: ExplanationJson['conditions'][number]['filters'][number]): string {
  const { result, compared, note } = filter
  const sign = result === 'passed' ? '✓' : result === 'failed' ? '✗' : '·'
  const value = typeof compared?.value === 'string' ? compared.value : JSON.stringify(compared?.value ?? null)
  const found =
    compared === null ? '' : `: ${compared.source === 'absent' ? 'absent' : `${value} (${compared.source})`}`
  return `${sign} ${describeFilter(filter)}${found}${note === null ? '' : `; ${note}`}`
}
