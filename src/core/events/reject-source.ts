// The text form of a reject's source in the log and in the reject store.

import type { RejectSource } from './captured-event.ts'

type V1Source = NonNullable<RejectSource['v1']>

/** Returns '' for no source; writes a null kind as null. */
export function encodeRejectSource(source: RejectSource | null): string {
  if (source === null) return ''
  const { kind, isTruncated, protocol, engage, ip, sentAtMs, personProcessingForcedOff, v1 } = source
  return JSON.stringify({
    kind,
    ...(isTruncated ? { cut: true } : {}),
    ...(protocol === 'v1' ? { protocol } : {}),
    ...(engage ? { engage } : {}),
    ...(ip === '' ? {} : { ip }),
    ...(sentAtMs === null ? {} : { sent_at: sentAtMs }),
    ...(personProcessingForcedOff ? { forced_off: true } : {}),
    ...(v1 === undefined ? {} : { v1: encodeV1(v1) }),
  })
}

/** Null for text that this version cannot read: such a reject is shown but cannot be replayed. */
export function decodeRejectSource(text: string): RejectSource | null {
  if (text === '') return null
  let fields: { readonly [name: string]: unknown } | null
  try {
    fields = JSON.parse(text)
  } catch {
    return null
  }
  const kind = fields?.kind
  if (kind !== 'request' && kind !== 'item' && kind !== 'event' && kind !== null) return null
  const { cut, protocol, engage, ip, sent_at: sentAt, forced_off: forcedOff, v1 } = fields!
  return {
    kind,
    isTruncated: cut === true,
    protocol: protocol === 'v1' ? 'v1' : 'v0',
    engage: engage === true,
    ip: typeof ip === 'string' ? ip : '',
    sentAtMs: typeof sentAt === 'number' ? sentAt : null,
    personProcessingForcedOff: forcedOff === true,
    ...(typeof v1 === 'object' && v1 !== null && { v1: decodeV1(v1) }),
  }
}

function encodeV1({ sdk, aiOnly }: V1Source): object {
  return { ...(sdk === null ? {} : { sdk: [sdk.name, sdk.version] }), ...(aiOnly ? { ai: true } : {}) }
}

function decodeV1({ sdk, ai }: { readonly sdk?: unknown; readonly ai?: unknown }): V1Source {
  const [name, version] = Array.isArray(sdk) ? sdk : []
  const isNamed = typeof name === 'string' && typeof version === 'string'
  return { sdk: isNamed ? { name, version } : null, aiOnly: ai === true }
}

/** Removes the address, for projects that keep no addresses. */
export function removeAddress(source: RejectSource | null): RejectSource | null {
  return source === null || source.ip === '' ? source : { ...source, ip: '' }
}
