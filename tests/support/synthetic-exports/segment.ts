// Archives of Segment and, every second part, of RudderStack. Source: docs/wire/import.md §1.3.

import { lineFile } from './export-files.ts'
import { type Happening, uuidFor } from './happenings.ts'
import { jsonLine, rowsOf, type SyntheticSource } from './synthetic-source.ts'

export const segment: SyntheticSource = {
  name: 'segment',
  open: ({ folder, part, seed }) =>
    rowsOf(lineFile(`${folder}/${part % 2 === 0 ? 'segment-logs' : 'rudder-logs'}/${part}.gz`), each =>
      jsonLine(each, part % 2 === 0 ? segmentMessage(each, seed) : rudderMessage(each, seed)),
    ),
}

function segmentMessage(happening: Happening, seed: number): object {
  const { index, kind, timeUs, fault, plan } = happening
  const time = new Date(Math.floor(timeUs / 1_000)).toISOString()
  return {
    ...idsOf(happening),
    ...callOf(happening),
    ...(kind === 'identify' && { traits: traitsOf(happening) }),
    ...(fault !== 'without id' && { messageId: `ajs-${seed}-${index}` }),
    timestamp: fault === 'bad time' ? 'soon' : time,
    ...(fault !== 'bad time' && { originalTimestamp: time, sentAt: time, receivedAt: time }),
    context: contextOf(happening),
    ...(index % 50 === 0 && { integrations: { PostHog: plan !== 'free' } }),
  }
}

/** RudderStack's SDKs put traits into the context, and generate UUIDs. */
function rudderMessage(happening: Happening, seed: number): object {
  const { index, kind, timeUs, fault } = happening
  const time = new Date(Math.floor(timeUs / 1_000))
  return {
    ...idsOf(happening),
    ...callOf(happening),
    ...(fault !== 'without id' && { messageId: uuidFor(seed, index) }),
    channel: 'web',
    rudderId: `r-${happening.device}`,
    originalTimestamp: fault === 'bad time' ? 'soon' : time.toISOString(),
    ...(fault !== 'bad time' && {
      sentAt: new Date(time.getTime() + 10).toISOString(),
      receivedAt: new Date(time.getTime() + 250).toISOString(),
    }),
    context: { ...contextOf(happening), ...(kind === 'identify' && { traits: traitsOf(happening) }) },
  }
}

function idsOf({ user, device, fault }: Happening): object {
  return fault === 'nobody' ? { userId: null } : { ...(user !== null && { userId: user }), anonymousId: device }
}

function callOf({ kind, company, plan, amount, page, user, fault }: Happening): object {
  switch (kind) {
    case 'view':
      return { type: 'page', name: 'Página', properties: { url: `https://app.example.test${page}`, path: page } }
    case 'order':
      return { type: 'track', event: 'Order paid', properties: { amount, plan } }
    case 'click':
      return { type: 'screen', name: 'ホーム' }
    case 'company':
      return { type: 'group', groupId: company ?? 'company-0', traits: { name: 'Ærø A/S', plan } }
    case 'session':
      return user === null || fault === 'nobody'
        ? { type: 'track', event: 'Left' }
        : { type: 'alias', previousId: `old-${user}` }
    default:
      return { type: 'identify' }
  }
}

function traitsOf({ user, device, plan }: Happening): object {
  return { email: `${user ?? device}@example.test`, plan }
}

function contextOf({ company, page }: Happening): object {
  return {
    ip: '192.0.2.3',
    page: { path: page, referrer: 'https://search.example.test/' },
    library: { name: 'analytics.js', version: '2.1.0' },
    ...(company !== null && { groupId: company }),
  }
}
