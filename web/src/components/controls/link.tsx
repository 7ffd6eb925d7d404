import type { ComponentProps } from 'react'
import { joinClasses } from '../class-names.ts'
import { Icon } from '../icon.tsx'
import { isWebAddress } from '../text/web-address.ts'
import css from './link.module.css'

/** A link within the screens. Made for `createLink` of the router as well. */
export function Link({ className, ...props }: ComponentProps<'a'>) {
  return <a {...props} className={joinClasses(css.link, className)} />
}

/** A link to an address from outside: only `http` and `https` become links, anything else stays text. */
export function OutsideLink({ href, children, ...props }: ComponentProps<'a'> & { href: string }) {
  if (!isWebAddress(href)) return <bdi>{children}</bdi>
  return (
    <Link {...props} href={href} rel="noopener noreferrer" target="_blank">
      {children}
      <Icon name="arrow-up-right" size={14} />
    </Link>
  )
}
