// The fields of OpenTelemetry's export requests that lead to the counted items and to the name of the service, with
// their names in JSON and their numbers in protobuf. All other fields are skipped.
// Source: opentelemetry-proto, collector/{logs,metrics,trace}/v1.

import type { OtlpSignal } from './otlp-paths.ts'

export interface OtlpField {
  readonly number: number
  /** The field's key in JSON, as bytes. */
  readonly key: Uint8Array
  readonly isList: boolean
  /** The known fields of the message in this field, none for an item; `text` for a text, whose place is recorded. */
  readonly inside: readonly OtlpField[] | 'text'
  readonly role: FieldRole
}

/** `item`: a counted item. `attribute`, `name`, `value`: an attribute of a resource, and its parts. */
export type FieldRole = 'path' | 'item' | 'resource' | 'attribute' | 'name' | 'value'

/**
 * Whether a value of another type makes the request unreadable. False for attributes of a resource, on which nothing
 * depends.
 */
export function isStructuralField({ role }: OtlpField): boolean {
  return role === 'path' || role === 'item'
}

const value = otlpField(2, 'value', [otlpField(1, 'stringValue', 'text', 'value')], 'value')
const attribute = otlpList(1, 'attributes', [otlpField(1, 'key', 'text', 'name'), value], 'attribute')
const resource = otlpField(1, 'resource', [attribute], 'resource')

const dataPoints = [otlpList(1, 'dataPoints', [], 'item')]
const metric = [
  otlpField(5, 'gauge', dataPoints),
  otlpField(7, 'sum', dataPoints),
  otlpField(9, 'histogram', dataPoints),
  otlpField(10, 'exponentialHistogram', dataPoints),
  otlpField(11, 'summary', dataPoints),
]

/** The fields of a whole request. */
export const requestFields: Record<OtlpSignal, readonly OtlpField[]> = {
  logs: toRequestFields('Logs', otlpList(2, 'logRecords', [], 'item')),
  metrics: toRequestFields('Metrics', otlpList(2, 'metrics', metric)),
  traces: toRequestFields('Spans', otlpList(2, 'spans', [], 'item')),
}

function toRequestFields(name: string, content: OtlpField): readonly OtlpField[] {
  return [otlpList(1, `resource${name}`, [resource, otlpList(2, `scope${name}`, [content])])]
}

function otlpField(number: number, key: string, inside: OtlpField['inside'], role: FieldRole = 'path'): OtlpField {
  return { number, key: Buffer.from(key), isList: false, inside, role }
}

function otlpList(...given: Parameters<typeof otlpField>): OtlpField {
  return { ...otlpField(...given), isList: true }
}
