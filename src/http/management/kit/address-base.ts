// Where a caller reaches this instance: what the addresses of other pages begin with.

import type { FastifyRequest } from 'fastify'
import { withoutMapping } from '#wire/address/client-address.ts'
import type { TrustedProxies } from '#wire/address/trusted-proxies.ts'

/** Scheme, host and what a proxy takes away of the path, without a final slash; '' makes addresses relative. */
export type AddressBase = (request: FastifyRequest) => string

const hostForm = /^[A-Za-z0-9.:[\]_-]{1,255}$/
const prefixForm = /^(?:\/[A-Za-z0-9._~-]+){1,16}\/?$/

/**
 * `publicUrl` where there is one; else the request's own Host, or what a trusted proxy says in `X-Forwarded-Host` and
 * `X-Forwarded-Prefix`. That a proxy took the request by https is believed from anybody: only where the caller's own next
 * request goes depends on it.
 */
export function createAddressBase(publicUrl: string | null, trustedProxies: TrustedProxies): AddressBase {
  return request => {
    if (publicUrl !== null) return publicUrl
    const { headers } = request
    const isTrusted = trustedProxies.trusts(withoutMapping(request.socket.remoteAddress ?? ''))
    const forwarded = (name: string, form: RegExp) => {
      const first = isTrusted ? [headers[name] ?? ''].flat().join(',').split(',', 1)[0]!.trim() : ''
      return form.test(first) ? first : null
    }
    const host = forwarded('x-forwarded-host', hostForm) ?? headers.host ?? ''
    const prefix = forwarded('x-forwarded-prefix', prefixForm)?.replace(/\/$/, '') ?? ''
    if (!hostForm.test(host)) return prefix
    const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : request.protocol
    return `${scheme}://${host}${prefix}`
  }
}

const bases = new WeakMap<FastifyRequest, AddressBase>()

/** Before a request is handled. */
export function noteAddressBase(request: FastifyRequest, base: AddressBase): void {
  bases.set(request, base)
}

export function addressBaseOf(request: FastifyRequest): string {
  return bases.get(request)!(request)
}
