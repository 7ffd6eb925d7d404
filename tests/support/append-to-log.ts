// A process that appends to the embedded log until it is killed or has appended its share. It prints the number of each
// event once its append is acknowledged. Arguments: FOLDER FIRST_NUMBER COUNT CALLERS SEGMENT_BYTES_MAX.

import { openSqliteLogWriter } from '#adapters/sqlite-log/sqlite-log-writer.ts'
import { aCapturedEvent, encodedEvents } from './values.ts'

const [folder = '', ...numbers] = process.argv.slice(2)
const [first = 0, count = 0, callers = 1, segmentBytesMax = 0] = numbers.map(Number)
const writer = await openSqliteLogWriter({ folder, nowMs: Date.now, logBytesMax: 2 ** 40, segmentBytesMax })
let next = first
const appendUntilDone = async () => {
  while (next < first + count) {
    const n = next++
    const propertiesJson = JSON.stringify({ pad: 'x'.repeat((n * 37) % 900) })
    await writer.append('live', encodedEvents([aCapturedEvent(n, { propertiesJson })]))
    process.stdout.write(`${n}\n`)
  }
}
await Promise.all(Array.from({ length: callers }, appendUntilDone))
await writer.close()
