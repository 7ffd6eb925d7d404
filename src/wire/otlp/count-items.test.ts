import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countOtlpJson, otlpDepthMax } from './count-json.ts'
import { countOtlpProtobuf } from './count-protobuf.ts'
import type { OtlpSignal } from './otlp-paths.ts'

/** A tiny encoder, independent of the walk. */
function varint(value: number): number[] {
  return value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))]
}

function message(number: number, ...content: (readonly number[])[]): number[] {
  const bytes = content.flat()
  return [...varint(number * 8 + 2), ...varint(bytes.length), ...bytes]
}

const text = (number: number, value: string) => message(number, [...Buffer.from(value)])
const attribute = (key: string, value: string) => message(1, text(1, key), message(2, text(1, value)))
const json = (value: unknown) => Buffer.from(JSON.stringify(value))

const metricKinds = { gauge: 5, sum: 7, histogram: 9, exponentialHistogram: 10, summary: 11 } as const

/** Returns 0 ≤ x < `below`, from a fixed seed. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Fields that the walk does not know, with every type of value. */
function unknownFields(random: (below: number) => number): number[] {
  const choices = [
    [...varint(31 * 8), ...varint(random(2 ** 40))],
    [...varint(30 * 8 + 1), ...Array(8).fill(0xff)],
    [...varint(29 * 8 + 5), 1, 2, 3, 4],
    text(28, 'x'.repeat(random(300))),
    [],
  ]
  return choices[random(choices.length)]!
}

interface Request {
  readonly protobuf: number[]
  readonly json: object
  readonly count: number
}

function randomRequest(signal: OtlpSignal, seed: number): Request {
  const random = randomFrom(seed)
  const times = <T>(make: () => T) => Array.from({ length: random(4) }, make)
  let count = 0
  const items = () =>
    times(() => {
      count++
      return unknownFields(random)
    })
  const name = { logs: 'Logs', metrics: 'Metrics', traces: 'Spans' }[signal]
  const resources = times(() => {
    const scopes = times(() => {
      if (signal !== 'metrics') {
        const own = items()
        const key = signal === 'logs' ? 'logRecords' : 'spans'
        return {
          bytes: message(2, unknownFields(random), ...own.map(item => message(2, item))),
          json: { [key]: own.map(() => ({ a: [{ b: '}]' }], c: null })) },
        }
      }
      const metrics = times(() => {
        const [kind, number] = Object.entries(metricKinds)[random(5)]!
        const points = items()
        return {
          bytes: message(2, text(1, 'queue'), message(number, ...points.map(point => message(1, point)))),
          json: { name: 'queue', [kind]: { dataPoints: points.map(() => ({ asDouble: -1.5e3 })) } },
        }
      })
      return {
        bytes: message(2, ...metrics.map(({ bytes }) => bytes)),
        json: { metrics: metrics.map(each => each.json) },
      }
    })
    return {
      bytes: message(1, ...scopes.map(({ bytes }) => bytes), unknownFields(random)),
      json: { schemaUrl: 'é\ud800', [`scope${name}`]: scopes.map(scope => scope.json) },
    }
  })
  return {
    protobuf: resources.flatMap(({ bytes }) => bytes),
    json: { [`resource${name}`]: resources.map(resource => resource.json) },
    count,
  }
}

describe('the count of an OpenTelemetry request', () => {
  it('matches the number of items that an independent encoder wrote, in protobuf and in JSON', () => {
    let total = 0
    for (let seed = 1; seed <= 400; seed++) {
      const signal = (['logs', 'metrics', 'traces'] as const)[seed % 3]!
      const request = randomRequest(signal, seed)
      total += request.count
      assert.equal(countOtlpProtobuf(Buffer.from(request.protobuf), signal)?.count, request.count, `seed ${seed}`)
      assert.equal(countOtlpJson(json(request.json), signal)?.count, request.count, `seed ${seed}`)
    }
    assert.ok(total > 300)
  })

  it('never throws on random or truncated bytes, and is refused or not higher when a message is truncated', () => {
    const random = randomFrom(7)
    for (let round = 0; round < 2_000; round++) {
      const bytes = Buffer.from(Array.from({ length: random(60) }, () => random(round % 2 === 0 ? 256 : 20)))
      for (const signal of ['logs', 'metrics', 'traces'] as const) {
        countOtlpProtobuf(bytes, signal)
        countOtlpJson(bytes, signal)
      }
    }
    const { protobuf, json: object, count } = randomRequest('logs', 5)
    const jsonText = json(object)
    for (let end = 0; end < protobuf.length; end++) {
      const cut = countOtlpProtobuf(Buffer.from(protobuf.slice(0, end)), 'logs')
      assert.ok(cut === null || cut.count <= count)
    }
    for (let end = 0; end < jsonText.length; end++) assert.equal(countOtlpJson(jsonText.subarray(0, end), 'logs'), null)
  })

  const resourceOf = (...attributes: number[][]) => message(1, message(1, ...attributes))
  const anyValue = (service: string) => ({ key: 'service.name', value: { stringValue: service } })

  it('is returned with the service of the first resource', () => {
    const first = resourceOf(attribute('host', 'a'), attribute('service.name', 'shöp'))
    const second = resourceOf(attribute('service.name', 'other'))
    const swapped = message(1, message(1, message(1, message(2, text(1, 'shop')), text(1, 'service.name'))))
    for (const [bytes, service] of [
      [[...first, ...second], 'shöp'],
      [[...resourceOf(), ...second], null],
      [swapped, 'shop'],
      [resourceOf(message(1, text(1, 'service.name'), message(2, [8, 1]))), null],
    ] as const)
      assert.equal(countOtlpProtobuf(Buffer.from(bytes), 'traces')!.service, service)

    const objects: readonly (readonly [unknown, string | null])[] = [
      [[anyValue('shöp'), anyValue('later')], 'shöp'],
      [[{ key: 'service.name', value: { intValue: '1' } }], null],
      [[1, { key: 1, value: 'x' }, anyValue('shop')], 'shop'],
      ['none', null],
    ]
    for (const [attributes, service] of objects)
      assert.equal(countOtlpJson(json({ resourceLogs: [{ resource: { attributes } }] }), 'logs')!.service, service)
  })

  it('is refused for malformed protobuf', () => {
    const malformed: readonly (readonly number[])[] = [
      [0x0b, 0x0c],
      [0x0c],
      [0x0e],
      [0x00, 0x01],
      [0x0a],
      [0x0a, 0x05, 0x12],
      [0x0a, 0x02, 0x12, 0x7f],
      [0x0a, ...Array(9).fill(0xff), 0x7f],
      [...Array(10).fill(0x80), 0x00],
      [0x10, ...Array(10).fill(0x80), 0x01],
      [0x11, 1, 2, 3],
      [0x15, 1, 2],
      [0xff, 0xff, 0xff, 0xff, 0x7f, 0x00],
    ]
    for (const bytes of malformed) assert.equal(countOtlpProtobuf(Buffer.from(bytes), 'logs'), null, String(bytes))
  })

  it('is refused for JSON that is invalid, has another structure or is nested too deeply', () => {
    const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
    assert.equal(countOtlpJson(Buffer.from(nested(otlpDepthMax)), 'traces')?.count, 0)
    const refused = [
      ...[nested(otlpDepthMax + 1), '[1,2]', 'hello, world', '"{}"', '{}x', '{},{}', '{"a":1,}', '{"a":[1,]}', '{}\0'],
      ...['{"resourceSpans":{}}', '{"resourceSpans":[1]}', '{"resourceSpans":[{"scopeSpans":[{"spans":["x"]}]}]}'],
      ...['{"a":"\\x"}', '{"a":"\n"}', '{"a":01}', '{"a":nul}', '[', '{"a":"', '{}\n{}'],
      '['.repeat(100_000),
    ]
    for (const body of refused) assert.equal(countOtlpJson(Buffer.from(body), 'traces'), null, body.slice(0, 60))
  })

  it('accepts null for absent fields and fields of other signals, and accepts one object per line only for logs', () => {
    for (const body of ['{"resourceLogs":null}', '{"resourceSpans":[{}]}', ' { } \n', '{}\r\n\n{}\n'])
      assert.equal(countOtlpJson(Buffer.from(body), 'logs')?.count, 0, body)
    const line = '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{},{}]}]}]}'
    assert.equal(countOtlpJson(Buffer.from(`${line}\n${line}`), 'logs')?.count, 4)
    assert.equal(countOtlpJson(Buffer.from(`${line} ${line}`), 'logs'), null)
  })
})
