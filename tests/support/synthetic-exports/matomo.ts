// Visits of Matomo, whose actions have times in the site's time zone. Source: docs/wire/import.md §1.6.

import { lineFile } from './export-files.ts'
import type { Happening } from './happenings.ts'
import { jsonLine, rowsOf, type SyntheticSource } from './synthetic-source.ts'

/** The site's zone is two hours ahead of UTC. */
const shiftSeconds = 7_200

export const matomo: SyntheticSource = {
  name: 'matomo',
  open: ({ folder, part }) =>
    rowsOf(lineFile(`${folder}/visits-${part}.jsonl.gz`), each => jsonLine(each, visitOf(each))),
}

function visitOf(happening: Happening): object {
  const { index, timeUs, user, device, fault } = happening
  const seconds = Math.floor(timeUs / 1_000_000)
  const hasNoIds = fault === 'nobody'
  return {
    idSite: 1,
    // Orders, carts and actions without ids are distinguished by the id of the visit.
    idVisit: index + 1,
    visitorId: hasNoIds ? '' : visitorId(device),
    userId: hasNoIds ? '' : user,
    visitIp: '192.0.2.60',
    browserName: 'Firefox',
    resolution: '1920x1080',
    country: 'Österreich',
    latitude: '47.07',
    firstActionTimestamp: seconds,
    lastActionTimestamp: seconds + 30,
    actionDetails: actionsOf(happening, seconds + shiftSeconds),
  }
}

function actionsOf({ index, kind, page, amount, plan, fault }: Happening, timestamp: number): object[] {
  const url = `https://site.example.test${page}`
  const id = (nth: number) => (fault === 'without id' ? {} : { pageId: index * 4 + nth })
  const view = {
    type: 'action',
    url,
    pageTitle: 'Größe',
    ...id(0),
    timestamp: fault === 'bad time' ? 'soon' : timestamp,
  }
  switch (kind) {
    case 'order':
      return [view, { type: 'ecommerceOrder', orderId: `o-${index}`, revenue: amount, timestamp: timestamp + 20 }]
    case 'click':
      return [view, { type: 'event', url, eventAction: 'play', eventName: plan, ...id(1), timestamp: timestamp + 5 }]
    case 'identify':
      return [view, { type: 'goal', ...id(2), timestamp: timestamp + 9 }]
    case 'session':
      return []
    case 'company':
      return [{ type: 'search', siteSearchKeyword: 'lámpara', ...id(3), timestamp }]
    default:
      return [view]
  }
}

function visitorId(device: string): string {
  const [, person, which] = device.split('-')
  return `a1${Number(person).toString(16).padStart(12, '0')}0${which}`
}
