// The fields of OpenTelemetry's export requests that lead to what is counted and to the name of the service, with their
// names in JSON and their numbers in protobuf. All other fields are skipped.
// Source: opentelemetry-proto, collector/{logs,metrics,trace}/v1.

import type { OtlpSignal } from './otlp-paths.ts'

export interface OtlpField {
  readonly number: number
  /** Its key in JSON, in bytes. */
  readonly key: Uint8Array
  readonly isList: boolean
  /** The known fields of the message, none for an item; `text` for a text, whose place is noted. */
  readonly inside: readonly OtlpField[] | 'text'
  readonly role: FieldRole
}

/** `item`: what is counted. `attribute`, `name`, `value`: an attribute of a resource, and its parts. */
export type FieldRole = 'path' | 'item' | 'resource' | 'attribute' | 'name' | 'value'

/** Whether a value of another type makes the request unreadable; nothing depends on the attributes of a resource. */
export function isOnPath({ role }: OtlpField): boolean {
  return role === 'path' || role === 'item'
}

const value = field(2, 'value', [field(1, 'stringValue', 'text', 'value')], 'value')
const attribute = list(1, 'attributes', [field(1, 'key', 'text', 'name'), value], 'attribute')
const resource = field(1, 'resource', [attribute], 'resource')

const dataPoints = [list(1, 'dataPoints', [], 'item')]
const metric = [
  field(5, 'gauge', dataPoints),
  field(7, 'sum', dataPoints),
  field(9, 'histogram', dataPoints),
  field(10, 'exponentialHistogram', dataPoints),
  field(11, 'summary', dataPoints),
]

/** The fields of a whole request. */
export const requestFields: Record<OtlpSignal, readonly OtlpField[]> = {
  logs: request('Logs', list(2, 'logRecords', [], 'item')),
  metrics: request('Metrics', list(2, 'metrics', metric)),
  traces: request('Spans', list(2, 'spans', [], 'item')),
}

function request(name: string, content: OtlpField): readonly OtlpField[] {
  return [list(1, `resource${name}`, [resource, list(2, `scope${name}`, [content])])]
}

function field(number: number, key: string, inside: OtlpField['inside'], role: FieldRole = 'path'): OtlpField {
  return { number, key: Buffer.from(key), isList: false, inside, role }
}

function list(...given: Parameters<typeof field>): OtlpField {
  return { ...field(...given), isList: true }
}
