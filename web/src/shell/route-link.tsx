import { createLink } from '@tanstack/react-router'
import { Link } from '../components/controls/link.tsx'

/** A link to a screen, checked against the addresses that exist, and loaded as soon as it is pointed at. */
export const RouteLink = createLink(Link)
