// Choices behind a button: closed by Escape, and when one goes elsewhere by pointer or by keyboard.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

const LEAVING = ["pointerdown", "focusin", "keydown"];

export function Menu({ title, label, class: kind = "", children }: { title: string; label?: string; class?: string; children: ComponentChildren }): JSX.Element {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event): void => {
      const own = menu.current;
      if (!own?.open) return;
      if (event instanceof KeyboardEvent ? event.key !== "Escape" : own.contains(event.target as Node)) return;
      if (event instanceof KeyboardEvent) own.querySelector("summary")?.focus();
      own.open = false;
    };
    for (const name of LEAVING) addEventListener(name, close);
    return () => LEAVING.forEach((name) => removeEventListener(name, close));
  }, []);
  return (
    <details class={`menu ${kind}`} ref={menu}>
      <summary aria-label={label}>{title}</summary>
      {children}
    </details>
  );
}
