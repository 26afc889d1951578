// The notices above every page.

import { noticesOf } from "./notices.ts";
import type { Live } from "./page.ts";

export function Banners({ live }: { live: Live }) {
  return (
    <div class="banners" role="status">
      {noticesOf(live).map(({ tone, title, text, link }) => (
        <p key={title} class={`banner banner-${tone}`}>
          <strong>{title}</strong>
          <span>{text}</span>
          {link === undefined ? null : <a href={link.to}>{link.words}</a>}
        </p>
      ))}
    </div>
  );
}
