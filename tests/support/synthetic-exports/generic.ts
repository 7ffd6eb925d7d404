// Records of no particular product with a mapping file, alternating between JSONL, CSV and Parquet. Source:
// docs/wire/import.md §1.9.

import { csvLine, lineFile, parquetFile } from './export-files.ts'
import { type Happening, wallTime } from './happenings.ts'
import { jsonLine, rowsOf, type SyntheticSource } from './synthetic-source.ts'

const columns = ['row_id', 'uid', 'device', 'ts', 'action', 'plan', 'amount', 'org', 'page'] as const

export const generic: SyntheticSource = {
  name: 'generic',
  mapping: {
    event: 'action',
    distinct_id: 'uid',
    anon_id: 'device',
    timestamp: 'ts',
    uuid: 'row_id',
    properties: ['amount', 'page'],
    types: { amount: 'number', ts: 'datetime' },
    groups: { company: 'org' },
    set: ['plan'],
    source_timezone: 'UTC',
  },
  open({ folder, part }) {
    switch (part % 3) {
      case 0:
        return rowsOf(lineFile(`${folder}/rows-${part}.jsonl`), each => jsonLine(each, rowOf(each)))
      case 1: {
        const file = lineFile(`${folder}/rows-${part}.csv.gz`)
        file.add(columns.join(','))
        return rowsOf(file, each => {
          const row: Record<string, string | number | bigint | null> = { ...rowOf(each), row_id: rowIdOf(each) }
          return csvLine(each.fault === 'broken' ? null : columns.map(name => cellOf(row[name])))
        })
      }
      default:
        return rowsOf(
          parquetFile(`${folder}/rows-${part}.parquet`, [
            { name: 'row_id', type: 'INT64' },
            { name: 'ts', type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' } },
            { name: 'amount', type: 'DOUBLE' },
            ...['uid', 'device', 'action', 'plan', 'org', 'page'].map(name => ({
              ...{ name, type: 'BYTE_ARRAY' as const, converted_type: 'UTF8' as const },
            })),
          ]),
          each => ({ ...rowOf(each), ts: each.fault === 'bad time' ? null : BigInt(each.timeUs) }),
        )
    }
  },
}

function rowOf(happening: Happening) {
  const { kind, timeUs, user, device, company, plan, amount, page, fault } = happening
  const hasNoIds = fault === 'nobody'
  return {
    row_id: rowIdOf(happening),
    uid: hasNoIds ? null : user,
    device: hasNoIds ? null : device,
    ts: fault === 'bad time' ? 'soon' : wallTime(timeUs),
    action: kind === 'view' ? '$pageview' : `Aktion ${kind}`,
    plan,
    amount,
    org: company,
    page,
  }
}

function rowIdOf({ bigId, fault }: Happening): bigint | null {
  return fault === 'without id' ? null : bigId
}

function cellOf(value: string | number | bigint | null | undefined): string | number | null {
  return typeof value === 'bigint' ? String(value) : (value ?? null)
}
