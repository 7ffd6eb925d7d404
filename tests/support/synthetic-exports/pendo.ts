// Pendo's Data Sync: Avro files of all events. Source: docs/wire/import.md §1.10.

import { avroFile } from './export-files.ts'
import type { Happening } from './happenings.ts'
import { rowsOf, type SyntheticSource } from './synthetic-source.ts'

const names: Record<Happening['kind'], string> = {
  view: 'load',
  order: 'pollResponse',
  click: 'click',
  identify: 'focus',
  session: 'change',
  company: 'guideSeen',
}
const optional = ['null', 'string']
const schema = {
  type: 'record',
  name: 'allevents',
  fields: [
    { name: 'eventType', type: 'string' },
    { name: 'visitorId', type: optional },
    { name: 'accountId', type: optional },
    { name: 'browserTimestamp', type: ['null', 'long'] },
    { name: 'url', type: 'string' },
    { name: 'remoteIp', type: 'string' },
    { name: 'pollId', type: optional },
    { name: 'pollResponse', type: optional },
    { name: 'propertiesJson', type: 'string' },
  ],
}

export const pendo: SyntheticSource = {
  name: 'pendo',
  open: ({ folder, part }) => rowsOf(avroFile(`${folder}/allevents-${part}.avro`, schema as never), rowOf),
}

function rowOf({ index, kind, timeUs, user, device, company, plan, amount, page, bigId, fault }: Happening): object {
  const hasId = fault !== 'without id'
  return {
    eventType: names[kind],
    visitorId: fault === 'nobody' ? null : (user ?? device),
    accountId: company,
    browserTimestamp: fault === 'bad time' ? null : Math.floor(timeUs / 1_000),
    url: `https://app.example.test${page}`,
    remoteIp: '192.0.2.1',
    pollId: kind === 'order' ? 'p-1' : null,
    pollResponse: kind === 'order' ? '9' : null,
    // Pendo's events have no ids: they are distinguished by their contents.
    propertiesJson: `{"plan":"${plan}","amount":${amount}${hasId ? `,"n":${index},"big":${bigId}` : ''}}`,
  }
}
